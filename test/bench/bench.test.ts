import { partNames } from "./parts/all.ts";
import { testParts } from "./testing/test-parts.ts";

// The peers take more than a dozen processes: see peers.long.test.ts.
testParts(partNames.filter((name) => name !== "peers"));
