import { ownValue } from "@tapedeck/shared/own-value";
import { CommandError } from "../../command-error.ts";
import { print, printError, printJson } from "../../display/output.ts";
import { table } from "../../display/table.ts";
import { localContext, readContexts, writeContexts } from "../../targets/contexts.ts";

export type ContextsOptions = { readonly json?: boolean };

/** The targets that commands can use, without their tokens. */
export function listContexts({ json }: ContextsOptions): void {
  const { current = localContext, contexts } = readContexts(process.env);
  const items = [
    { name: localContext, url: "", hasToken: false },
    ...Object.entries(contexts).map(([name, { url, token }]) => ({ name, url, hasToken: token !== undefined })),
  ].map((one) => ({ ...one, current: one.name === current }));
  if (json) {
    printJson({ items });
    return;
  }
  const rows = items.map((one) => [
    one.current ? "*" : "",
    one.name,
    one.url || "this machine",
    one.hasToken ? "saved" : "-",
  ]);
  print(
    table(
      ["", "CONTEXT", "WHERE", "TOKEN"].map((title) => ({ title })),
      rows,
    ),
  );
  if (process.env.TAPEDECK_URL) printError("TAPEDECK_URL is set and overrides the context.");
}

export function useContext(name: string): void {
  const { contexts } = readContexts(process.env);
  if (name !== localContext && ownValue(contexts, name) === undefined) {
    throw new CommandError(`there is no context ${name}: see \`tapedeck context\`, or log in.`);
  }
  writeContexts(process.env, { ...(name !== localContext && { current: name }), contexts });
  print(`commands now use ${ownValue(contexts, name)?.url ?? "the Tapedeck server on this machine"}`);
}
