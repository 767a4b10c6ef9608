import { testParts } from "./testing/test-parts.ts";

testParts(["peers"]);
