// Reads vitest's reports, each named with the exit code of its run, prints "N passed, N failed" for all of them and exits
// with 0 only if every run did. There is no report when an earlier step (installation, lint, types) failed, and that
// counts as one failure.
import { readFileSync } from "node:fs";

const count = (file) => {
  try {
    const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(file, "utf8"));
    const unloaded = testResults.filter(
      ({ status, assertionResults }) => status === "failed" && !assertionResults.length,
    );
    return { passed: numPassedTests, failed: numFailedTests + unloaded.length };
  } catch {
    return { passed: 0, failed: 1 };
  }
};

const runs = [];
for (let args = process.argv.slice(2); args.length > 0; args = args.slice(2)) {
  const [file, code] = args;
  const { passed, failed } = count(file);
  // A run may fail without a failed test: by an error that nobody caught.
  runs.push({ passed, failed: code === "0" ? failed : Math.max(failed, 1) });
}
const sum = (what) => runs.reduce((all, run) => all + run[what], 0);
console.log(`${sum("passed")} passed, ${sum("failed")} failed`);
process.exitCode = runs.length > 0 && sum("failed") === 0 ? 0 : 1;
