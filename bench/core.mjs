// Measures the decision core and writes bench/DATE-core.md: `make bench`, or node bench/core.mjs BINARY.
//
// 1. Ranking a million signals with the whole program, against the same rules in plain JavaScript.
// 2. The policies inside core, with criterion.
// Needs GNU time for the peak memory, and 200 MB of disk under target/ while it runs.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';

const BINARY = process.argv[2] ?? 'target/dist/forager';
const SIGNALS = 1_000_000;
const TOP = 1_000;
const ROUNDS = 7;
const NOW = '2024-06-15T08:00:00Z';
const FOLDER = 'target/bench';
const FILE = `${FOLDER}/signals.jsonl`;

/** Runs a command; returns its output, seconds and peak kilobytes. */
function measure(command) {
  const start = process.hrtime.bigint();
  const ran = spawnSync('/usr/bin/time', ['--format', '%M', ...command], { maxBuffer: 1 << 28 });
  const seconds = Number(process.hrtime.bigint() - start) / 1e9;
  if (ran.status !== 0) throw new Error(`${command.join(' ')}: ${ran.stderr}`);
  return { output: ran.stdout.toString(), seconds, kilobytes: Number(ran.stderr.toString().trim()) };
}

function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
}

/** The rows without what only one of the two prints. */
function comparable(output) {
  const rows = output.trim().split('\n').map((line) => JSON.parse(line));
  return JSON.stringify(rows.map(({ url, score, level, reasons }) => [url, score, level, reasons]));
}

function rank() {
  mkdirSync(FOLDER, { recursive: true });
  execFileSync('node', ['bench/signals.mjs', String(SIGNALS), FILE]);
  const forager = [BINARY, 'rank', '--now', NOW, '--top', String(TOP), FILE];
  const plain = ['node', 'bench/rank.mjs', FILE, NOW, String(TOP)];
  const runs = { forager: [], plain: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    // In turns, so that a busy moment of the machine meets both.
    runs.forager.push(measure(forager));
    runs.plain.push(measure(plain));
  }
  if (comparable(runs.forager[0].output) !== comparable(runs.plain[0].output)) {
    throw new Error('the two programs rank differently');
  }
  const digest = createHash('sha256').update(readFileSync(FILE)).digest('hex').slice(0, 16);
  rmSync(FOLDER, { recursive: true });
  const summary = (list) => ({
    seconds: median(list.map((run) => run.seconds)),
    best: Math.min(...list.map((run) => run.seconds)),
    megabytes: Math.max(...list.map((run) => run.kilobytes)) / 1024,
  });
  return { forager: summary(runs.forager), plain: summary(runs.plain), digest, commands: [forager, plain] };
}

/** Criterion's figures: name, and elements a second (its estimate, with the bounds). */
function policies() {
  const ran = spawnSync('cargo', ['bench', '--quiet', '--package', 'forager-core'], { maxBuffer: 1 << 26 });
  if (ran.status !== 0) throw new Error(`cargo bench: ${ran.stderr}`);
  const text = ran.stdout.toString();
  const pattern = /^(\S[^\n]*?)\s*\n?\s+time:[^\n]*\n\s+thrpt:\s+\[([^\]]+)\]/gm;
  const rows = [...text.matchAll(pattern)].map(([, name, throughput]) => ({ name, throughput }));
  if (rows.length === 0) throw new Error(`no figures in\n${text}`);
  return rows;
}

function report({ forager, plain, digest, commands }, rows) {
  const fixed = (number, digits = 2) => number.toFixed(digits);
  const row = (name, run) =>
    `| ${name} | ${fixed(run.seconds, 3)} s | ${fixed(run.best, 3)} s | ${fixed(run.megabytes, 1)} MiB |`;
  return `# The decision core, ${new Date().toISOString().slice(0, 10)}

Command: \`make bench\`, at commit ${execFileSync('git', ['rev-parse', '--short', 'HEAD']).toString().trim()}.
Machine: ${cpus().length} × ${cpus()[0].model}, ${Math.round(totalmem() / 2 ** 30)} GiB; Node ${process.version},
${execFileSync('rustc', ['--version']).toString().trim()}.

## Ranking ${SIGNALS.toLocaleString('en')} signals from a file, best ${TOP.toLocaleString('en')}, whole program

| | median of ${ROUNDS} | best | peak memory |
|---|---|---|---|
${row('`forager rank`', forager)}
${row('the same rules in plain JavaScript', plain)}

**${fixed(plain.seconds / forager.seconds, 1)}× as fast** (ratio of medians; of bests ${fixed(plain.best / forager.best, 1)}×).
Both printed the same URLs, scores, levels and reasons. The file is made by \`bench/signals.mjs\` (sha256 ${digest}…); the
runs took turns:

\`\`\`
${commands.map((command) => command.join(' ')).join('\n')}
\`\`\`

What limits it: both cores are busy, and most of their time goes into reading JSON (two thirds in a profile of 2026-11-15).

## Inside core, one core, elements a second

| benchmark | low | estimate | high |
|---|---|---|---|
${rows
  .map(({ name, throughput }) => {
    const [low, lowUnit, middle, middleUnit, high, highUnit] = throughput.split(/\s+/);
    return `| ${name} | ${low} ${lowUnit} | ${middle} ${middleUnit} | ${high} ${highUnit} |`;
  })
  .join('\n')}
`;
}

const file = `bench/${new Date().toISOString().slice(0, 10)}-core.md`;
writeFileSync(file, report(rank(), policies()));
console.log(`written: ${file}`);
