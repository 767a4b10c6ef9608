import { gatewaySettings } from "@tapedeck/gateway/for-cli/settings";
import { ingestSettings } from "@tapedeck/ingest/for-cli/settings";
import { querySettings } from "@tapedeck/query/for-cli/settings";
import { parseSettings, settingsReader } from "@tapedeck/shared/service/settings";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { mergedSettings } from "./definitions.ts";
import { nestedLists } from "./nested.ts";
import { example } from "./page.ts";

describe("docs/settings.md", () => {
  it("has an example that the services take", () => {
    const read = settingsReader({ env: {}, file: parseSettings("tapedeck.yaml", example) });
    const { sources } = ingestSettings(read);
    const { endpoints } = gatewaySettings(read);
    querySettings(read);
    read.assertValid({ complete: true });
    expect(sources.map(({ upstream }) => upstream)).toEqual(["skaffold", "vagrant", "rkt"]);
    expect(endpoints).toHaveLength(1);
  });
});

describe("a setting", () => {
  const port = { key: "a.port", form: "integer", fallback: 1 } as const;

  it("needs a description from one of those that read it", () => {
    const silent = { ...port, reader: "gateway" } as const;
    expect(() => mergedSettings([silent])).toThrow("settings without a description: a.port");

    const described = { ...port, description: "Where it listens.", reader: "query" } as const;
    expect(mergedSettings([silent, described])).toEqual([
      { ...port, description: "Where it listens.", readBy: ["query"] },
    ]);
  });

  it("is the same for all that describe it", () => {
    const here = { ...port, description: "Where it listens.", reader: "gateway" } as const;
    const there = { ...here, fallback: 2, reader: "query" } as const;
    expect(() => mergedSettings([here, there])).toThrow("a.port: gateway and query define it differently");
  });

  it("needs a description in a list, too, and shows the default of what is transformed", () => {
    const list = (item: z.ZodType) => ({ key: "list", form: "custom", fallback: [], schema: z.array(item) }) as const;
    const wait = z.unknown().transform(Number).default(90_000);
    expect(() => nestedLists(list(z.object({ wait })))).toThrow("settings without a description: list[].wait");

    const described = wait.meta({ description: "How long.", form: "duration", isDuration: true });
    expect(nestedLists(list(z.object({ wait: described })))[0]?.list).toContain(
      "* `wait` (duration; default `90s`). How long.",
    );
  });
});
