// Reads vitest's reports, each named with the exit code of its run, and prints which tests failed and why, and then "N
// passed, N failed" for all of them. It exits with 0 only if every run did. There is no report when an earlier step (installation, lint, types) failed, and that
// counts as one failure. A run named "-" has no report: only its exit code counts.
import { readFileSync } from "node:fs";
import { relative } from "node:path";

/** Once more at the end, where it is found when only the end of the output was kept. */
const printFailure = (file, title, message) => {
  const lines = message.split("\n").filter((line) => line.trim() !== "");
  console.log(`FAILED ${relative(process.cwd(), file)} > ${title}\n${lines.slice(0, 12).join("\n")}\n`);
};

const count = (file) => {
  try {
    const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(file, "utf8"));
    const unloaded = testResults.filter(
      ({ status, assertionResults }) => status === "failed" && !assertionResults.length,
    );
    for (const { name, message } of unloaded) printFailure(name, "not loaded", message);
    for (const { name, assertionResults } of testResults) {
      for (const { status, fullName, failureMessages } of assertionResults) {
        if (status === "failed") printFailure(name, fullName, failureMessages.join("\n"));
      }
    }
    return { passed: numPassedTests, failed: numFailedTests + unloaded.length };
  } catch {
    return { passed: 0, failed: 1 };
  }
};

const runs = [];
for (let args = process.argv.slice(2); args.length > 0; args = args.slice(2)) {
  const [file, code] = args;
  const { passed, failed } = file === "-" ? { passed: 0, failed: 0 } : count(file);
  // A run can fail without a failed test, through an uncaught error.
  runs.push({ passed, failed: code === "0" ? failed : Math.max(failed, 1) });
}
const sum = (what) => runs.reduce((all, run) => all + run[what], 0);
console.log(`${sum("passed")} passed, ${sum("failed")} failed`);
process.exitCode = runs.length > 0 && sum("failed") === 0 ? 0 : 1;
