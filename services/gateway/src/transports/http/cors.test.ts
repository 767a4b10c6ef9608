import { expect, it } from "vitest";
import { headEntries } from "../../call-context.ts";
import { corsHeaders } from "./cors.ts";
import { openApiDocument } from "./routes/openapi.ts";

const heardAt = { pods: "2026-11-27T10:00:00Z" };
const head = { position: "x-1", session: "01A", sessionEnded: true, notHeardSince: heardAt.pods, heardAt };
const names = headEntries(head).map(([name]) => name);

it("pages of other origins can read every header that says how old an answer is", () => {
  const exposed = String(corsHeaders({ origin: "https://a.example" })["access-control-expose-headers"]).split(", ");
  expect(names).toContain("tapedeck-heard-at");
  expect(exposed).toEqual(expect.arrayContaining(names));
});

it("the API's description of a state has the same headers", () => {
  const { paths } = openApiDocument() as unknown as {
    paths: Record<string, { get: { responses: Record<string, { headers: Record<string, { description: string }> }> } }>;
  };
  const headers = paths["/api/v1/state"]?.get.responses["200"]?.headers ?? {};
  expect(Object.keys(headers)).toEqual(names);
  expect(headers["tapedeck-not-heard-since"]?.description).toContain("where a list is late");
});
