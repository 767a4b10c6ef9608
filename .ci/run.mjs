// Runs the README's test command on a checkout, with the long tests too (arguments are vitest's). Each file with a
// failure is run once more, alone: what passes there is flaky. The last line is "N passed, N failed"; a flaky test counts as passed and is listed before it.
// It exits with 0 only if nothing failed. A failure of the installation, of lint or types, and an uncaught error count as
// one failure. Searches begin with the same seed each time: what fails here fails because of the change.
//
// TAPEDECK_GREEN_COMMIT (optional) is a commit with which all this passed: tests of packages, images and charts are left
// out unless infra/, the lock file, a package.json or exports have changed since. `npm run test:nightly` has them all.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const packaging = ["infra/dist/**/*.long.test.ts", "infra/docker/**/*.long.test.ts", "infra/helm/**/*.long.test.ts"];
/** More files than these fail for one reason, which another run would only repeat. */
const maxFilesAgain = 10;
/** No file is run again later than this after the start, so that a run in which much hangs still ends with its result. */
const maxMinutes = 60;
const startedAt = Date.now();
const minutes = () => (Date.now() - startedAt) / 60_000;
const reports = mkdtempSync(join(tmpdir(), "tapedeck-ci-"));
const bin = resolve("node_modules", ".bin");
const outside = "(outside of its tests)";

const run = (command, args, env) =>
  new Promise((done) => {
    const child = spawn(command, args, { stdio: "inherit", env: { ...process.env, ...env } });
    child.once("error", () => done(127));
    child.once("close", (code) => done(code ?? 1));
  });

/**
 * The tests of a vitest report; none where vitest did not come to its end. A file can fail without a failed test (it does
 * not load, a hook fails, its worker dies), and is an entry of its own then.
 */
const testsOf = (path) => {
  if (!existsSync(path)) return [];
  return JSON.parse(readFileSync(path, "utf8")).testResults.flatMap(({ name, status, message, assertionResults }) => {
    const file = relative(process.cwd(), name);
    const tests = assertionResults.map(({ fullName, status, failureMessages = [] }) => ({
      file,
      title: fullName,
      status,
      text: failureMessages.join("\n"),
    }));
    const isOutside = status === "failed" && tests.every((test) => test.status !== "failed");
    return isOutside ? [...tests, { file, title: outside, status, text: message }] : tests;
  });
};

const isUnchanged = () => {
  const commit = process.env.TAPEDECK_GREEN_COMMIT ?? "";
  const paths = ["infra", "package-lock.json", ":(glob)**/package.json", ":(glob)**/exports/**"];
  return commit !== "" && spawnSync("git", ["diff", "--quiet", commit, "HEAD", "--", ...paths]).status === 0;
};

const print = (kind, { file, title, text }) => {
  const lines = text.split("\n").filter((line) => line.trim() !== "" && !line.includes("node_modules"));
  console.log(`${kind} ${file} > ${title}\n${lines.slice(0, 12).join("\n")}\n`);
};

const report = join(reports, "tests.json");
/** Where vitest's configuration writes errors that no test caught: a report has none of them. */
const uncaught = join(reports, "uncaught.txt");
const code = await run(
  "npm",
  [
    ...["test", "--", "--project", "short", "--project", "long", ...process.argv.slice(2)],
    ...["--reporter=default", "--reporter=json", `--outputFile.json=${report}`],
  ],
  { TAPEDECK_TEST_UNCHANGED: isUnchanged() ? packaging.join(",") : "", TAPEDECK_TEST_UNCAUGHT: uncaught },
);
const tests = testsOf(report);
const failed = tests.filter(({ status }) => status === "failed");
const files = [...new Set(failed.map(({ file }) => file))];

const nameOf = ({ file, title }) => `${file} > ${title}`;
const passedAgain = new Set();
const failedAgain = new Map();
/** What failed only alone: a hook, say, where a test of the file failed before. */
const failedOnlyAgain = [];
for (const [at, file] of (files.length > maxFilesAgain ? [] : files).entries()) {
  if (minutes() > maxMinutes) {
    console.log(`\nno more files are run again after ${Math.round(minutes())} minutes`);
    break;
  }
  console.log(`\n${file} once more, alone`);
  const again = join(reports, `again-${at}.json`);
  const codeAgain = await run(
    join(bin, "node"),
    [
      ...[join("node_modules", "vitest", "vitest.mjs"), "run", "--maxWorkers=1", file],
      ...["--reporter=default", "--reporter=json", `--outputFile.json=${again}`],
    ],
    { PATH: `${bin}${delimiter}${process.env.PATH}`, TAPEDECK_TEST_UNCAUGHT: uncaught },
  );
  const testsAgain = testsOf(again);
  for (const test of testsAgain) {
    if (test.status === "passed") passedAgain.add(nameOf(test));
    else if (test.status === "failed") failedAgain.set(nameOf(test), test.text);
  }
  const names = new Set(failed.map(nameOf));
  failedOnlyAgain.push(...testsAgain.filter((test) => test.status === "failed" && !names.has(nameOf(test))));
  if (codeAgain === 0) passedAgain.add(nameOf({ file, title: outside }));
}

// Two tests of a file may have one name.
const isFlaky = (test) => passedAgain.has(nameOf(test)) && !failedAgain.has(nameOf(test));
const flaky = failed.filter(isFlaky);
const broken = failed.filter((test) => !isFlaky(test));
console.log("");
for (const test of flaky) print("FLAKY (failed, passed alone)", test);
for (const test of broken) {
  const textAgain = failedAgain.get(nameOf(test));
  print(textAgain === undefined ? "FAILED" : "FAILED (twice)", test);
  if (textAgain !== undefined && textAgain !== test.text) print("… and alone", { ...test, text: textAgain });
}
for (const test of failedOnlyAgain) print("FAILED (alone)", test);
if (flaky.length > 0) console.log(`${flaky.length} flaky`);
const isUncaught = existsSync(uncaught);
if (isUncaught) console.log(`FAILED (an error that no test caught)\n${readFileSync(uncaught, "utf8")}`);
const isOtherwiseBroken = isUncaught || (code !== 0 && failed.length === 0);
const passed = tests.filter(({ status }) => status === "passed").length + flaky.length;
const failures = broken.length + failedOnlyAgain.length + (isOtherwiseBroken ? 1 : 0);
rmSync(reports, { recursive: true });
console.log(`${passed} passed, ${failures} failed`);
process.exitCode = failures === 0 ? 0 : 1;
