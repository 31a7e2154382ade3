// The news score written plainly, for comparison: node rank.mjs FILE NOW TOP
// Reads the file line by line with JSON.parse and prints the best, as `forager rank` does.
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';

const [file, nowText, topText] = process.argv.slice(2);
const now = Date.parse(nowText);
const HOUR = 3_600_000;

function age(field, text) {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw new Error(`${field}: ${text} is not a time`);
  return Math.max(0, now - time);
}

function check(signals) {
  const { protocol } = new URL(signals.url);
  if (protocol !== 'http:' && protocol !== 'https:') throw new Error(`url: ${signals.url}`);
  const { visits = 0, topicRelevance = 0.5, hubDepth = 0 } = signals;
  if (!(topicRelevance >= 0 && topicRelevance <= 1)) throw new Error(`topicRelevance: ${topicRelevance}`);
  if (!(Number.isInteger(hubDepth) && hubDepth >= 0)) throw new Error(`hubDepth: ${hubDepth}`);
  if (!(Number.isInteger(visits) && visits >= 0)) throw new Error(`visits: ${visits}`);
}

function level(score) {
  if (score >= 80) return 'very high';
  if (score >= 60) return 'high';
  if (score >= 40) return 'medium';
  return score >= 20 ? 'low' : 'very low';
}

function scoreUrl(signals) {
  check(signals);
  let score = 50;
  const reasons = [];
  const add = (points, reason) => {
    score += points;
    if (reason) reasons.push(reason);
  };
  const visited = signals.lastVisited == null ? Infinity : age('lastVisited', signals.lastVisited);
  if (visited < HOUR) add(-30, 'Recently visited (<1h)');
  else if (visited < 24 * HOUR) add(-10, 'Visited today');
  else if (visited > 168 * HOUR) add(15, 'Not visited in 7+ days');
  if (signals.lastChanged != null && age('lastChanged', signals.lastChanged) < 24 * HOUR) {
    add(20, 'Changed in last 24h');
  }
  const relevance = signals.topicRelevance ?? 0.5;
  add(Math.round(relevance * 15), relevance > 0.8 && 'High topic relevance');
  if (signals.isHub) add(10, 'Is a hub page');
  if ((signals.hubDepth ?? 0) > 3) add(-5, 'Deep URL');
  score = Math.max(0, Math.min(100, score));
  return { url: signals.url, score, level: level(score), reasons };
}

const ranked = [];
const lines = createInterface({ input: createReadStream(file), crlfDelay: Infinity });
for await (const line of lines) ranked.push(scoreUrl(JSON.parse(line)));
ranked.sort((a, b) => b.score - a.score); // stable
for (const best of ranked.slice(0, Number(topText))) console.log(JSON.stringify(best));
