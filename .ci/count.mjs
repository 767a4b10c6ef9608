// Reads vitest's report, prints "N passed, N failed" and exits as the test run did. There is no report when an earlier
// step (installation, lint, types) failed, and that counts as one failure.
import { readFileSync } from "node:fs";

const [file, code] = process.argv.slice(2);

const count = () => {
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

const { passed, failed } = count();
const ok = code === "0" && failed === 0;
console.log(`${passed} passed, ${ok ? 0 : Math.max(failed, 1)} failed`);
process.exitCode = ok ? 0 : 1;
