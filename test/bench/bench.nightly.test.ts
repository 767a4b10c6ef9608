import { defaultParts } from "./parts/all.ts";
import { testParts } from "./testing/test-parts.ts";

testParts(defaultParts.filter((name) => name !== "peers"));
