import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";

// Only root may become somebody else.
it.runIf(process.getuid?.() === 0)("a user without an entry in /etc/passwd has a name, too", async () => {
  const module = new URL("login-name.ts", import.meta.url).href;
  const program = `const { loginName } = await import(${JSON.stringify(module)});
    process.setuid(54321);
    console.log(loginName({}), loginName({ USER: "alice" }));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program]);
  expect(stdout).toBe("54321 alice\n");
});
