// Writes signals to rank, one a line: node signals.mjs COUNT FILE. The same every time.
import { closeSync, openSync, writeSync } from 'node:fs';

const [count, file] = [Number(process.argv[2]), process.argv[3]];
const NOW = Date.parse('2024-06-15T08:00:00Z');
const HOUR = 3_600_000;

// A small generator with a fixed start (mulberry32), because Math.random has no seed.
let state = 1;
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
}

/** A time before now, `hours` ago on average: many recent ones and a long tail, as crawlers have. */
function earlier(hours) {
  const age = -Math.log(1 - random()) * hours * HOUR;
  return new Date(NOW - age).toISOString().replace(/\.\d+Z$/, 'Z');
}

const out = openSync(file, 'w');
let lines = [];
for (let i = 0; i < count; i += 1) {
  const signals = {
    url: `https://news${i % 5000}.example.com/section/${i % 37}/article-${i}`,
    visits: Math.floor(random() * 500),
  };
  if (random() < 0.9) signals.lastVisited = earlier(100);
  if (random() < 0.5) signals.lastChanged = earlier(60);
  signals.topicRelevance = Math.round(random() * 100) / 100;
  signals.hubDepth = Math.floor(random() * 8);
  signals.isHub = random() < 0.1;
  lines.push(JSON.stringify(signals));
  if (lines.length === 10_000 || i === count - 1) {
    writeSync(out, `${lines.join('\n')}\n`);
    lines = [];
  }
}
closeSync(out);
