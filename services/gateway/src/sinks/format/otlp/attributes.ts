import type { AnyValue, KeyValue } from "@tapedeck/proto/opentelemetry/proto/common/v1/common";
import { ownValue } from "@tapedeck/shared/own-value";
import type { Labels } from "./session-facts.ts";

/** The version of the semantic conventions that the names are of. */
export const schemaUrl = "https://opentelemetry.io/schemas/1.44.0";

export type AttributeValue = string | number | boolean;
export type Attributes = Readonly<Record<string, AttributeValue | undefined>>;

/** Without those that have no value. */
export function keyValues(attributes: Attributes): KeyValue[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined || value === "" ? [] : [{ key, value: { value: anyValue(value) }, key_strindex: 0 }],
  );
}

function anyValue(value: AttributeValue): AnyValue["value"] {
  switch (typeof value) {
    case "string":
      return { $case: "string_value", value };
    case "boolean":
      return { $case: "bool_value", value };
    case "number":
      return { $case: "int_value", value: BigInt(value) };
  }
}

/** Hosts whose name is that of a provider in the conventions. */
const providers: Readonly<Record<string, string>> = {
  "github.com": "github",
  "gitlab.com": "gitlab",
  "gitea.com": "gitea",
  "bitbucket.org": "bitbucket",
};

/** The state of the code, from the labels of a session. */
export function vcsAttributes({ remote = "", branch = "", commit = "" }: Labels): Attributes {
  const url = URL.parse(remote);
  const parts = url === null ? [] : url.pathname.split("/").filter(Boolean);
  return {
    "vcs.repository.url.full": url === null ? undefined : remote,
    "vcs.repository.name": parts.at(-1),
    "vcs.owner.name": parts.slice(0, -1).join("/"),
    "vcs.provider.name": ownValue(providers, url?.hostname ?? ""),
    "vcs.ref.head.name": branch,
    "vcs.ref.head.type": branch === "" ? undefined : "branch",
    "vcs.ref.head.revision": commit,
  };
}

/** Labels that have names of their own in the conventions, or are none of a trace. */
const named: ReadonlySet<string> = new Set(["remote", "branch", "commit", "host", "traceparent"]);
const maxLabels = 32;

export function labelAttributes(labels: Labels): Attributes {
  const others = Object.entries(labels).filter(([name]) => !named.has(name));
  return Object.fromEntries(others.slice(0, maxLabels).map(([name, value]) => [`tapedeck.label.${name}`, value]));
}
