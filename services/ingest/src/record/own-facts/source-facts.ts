import type { Fact } from "../../normalize/fact.ts";

export function sourceAdded(developer: string, project: string): Fact {
  return {
    kind: "source.added",
    summary: `${developer}/${project} is recorded`,
    detail: { $case: "source_detail", value: { developer_name: developer, project_name: project } },
  };
}

/** The tables forget the source at it. */
export function sourceErased(): Fact {
  return { kind: "source.erased", summary: "the source was erased" };
}

/** Keeps the source's cursor in the log when the message before it may expire. */
export function sourceCheckpoint(): Fact {
  return { kind: "source.checkpoint", summary: "how far the source is recorded" };
}
