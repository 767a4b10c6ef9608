import { defaultParts } from "./parts/all.ts";
import { startServiceHere } from "./testing/service-here.ts";
import { testParts } from "./testing/test-parts.ts";

// With services in processes of their own: bench.nightly.test.ts. The peers take more than a dozen processes: peers.nightly.test.ts.
// The views: views.long.test.ts.
testParts(
  defaultParts.filter((name) => name !== "peers"),
  { startService: startServiceHere },
);
