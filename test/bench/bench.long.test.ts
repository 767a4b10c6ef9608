import { usualParts } from "./parts/all.ts";
import { testParts } from "./testing/test-parts.ts";

testParts(usualParts.filter((name) => name !== "peers"));
