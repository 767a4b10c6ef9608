import { describe } from "vitest";
import { testEnds, testRecorded, vagrantProjects } from "../testing/vagrant.ts";

const project = vagrantProjects();

describe("tapedeck run of a vagrant that is found by its log", () => {
  testRecorded(project, "log");
  testEnds(project, "log");
});
