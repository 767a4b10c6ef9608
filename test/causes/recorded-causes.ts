import { join } from "node:path";
import { recordings } from "@tapedeck/fakes/recordings";
import type { PlantedCause } from "./planted-cause.ts";

/** A cause that was planted in a project, as a real Skaffold reported it. */
export type RecordedCause = Pick<PlantedCause, "name" | "cause"> & {
  /** The folder of the recording that has it. */
  readonly bad: string;
  /** Its loop. */
  readonly loop: number;
  /** The recording without it, or the number of a good loop of the same. */
  readonly good: string | number;
};

const of = (name: string) => join(import.meta.dirname, "recordings", name);

/**
 * The causes were written down before any of these was compared, by somebody who had read how differences are weighed. In
 * the first run four of six were first. The moved context was not seen at all, because the test had the description on v2
 * recorded after the loop's end. The missing database came after what the check had not reported yet; that was mended.
 */
export const recordedCauses: readonly RecordedCause[] = [
  {
    name: "the ports that one forwards are not forwarded",
    bad: of("port-is-not-forwarded/bad"),
    loop: 1,
    good: of("port-is-not-forwarded/good"),
    cause: { kinds: ["port"], text: /absent/ },
  },
  {
    name: "images are built for a platform that the machine can't run",
    bad: of("other-platform/bad"),
    loop: 1,
    good: of("other-platform/good"),
    cause: { kinds: ["platform"], text: /arm64/ },
  },
  {
    name: "the context of an artifact was moved in skaffold.yaml",
    bad: of("moved-context/bad"),
    loop: 1,
    good: of("moved-context/good"),
    cause: { kinds: ["configuration"], subject: /web/, text: /frontend/ },
  },
  {
    name: "the database that an app needs was never deployed",
    bad: of("missing-database/bad"),
    loop: 1,
    good: of("missing-database/good"),
    cause: { kinds: ["resource"], subject: /^deployment\/db$/ },
  },
  {
    name: "a build takes far longer than it ever did",
    bad: of("slow-build/bad"),
    loop: 5,
    good: 4,
    cause: { kinds: ["duration"], subject: /build api/ },
  },
  {
    name: "a test fails after an edit",
    bad: join(recordings.skaffold, "25-dev-test-fails"),
    loop: 2,
    good: 1,
    cause: { kinds: ["failure"], subject: /^test/, text: /TESTFAIL/ },
  },
];
