// For `tapedeck up`, which checks all settings before it starts the services, for the page that lists them, and for
// `tapedeck record`, which takes a source as the settings would.
export { ingestSettings, readConfig, type SourceConfig, sourceDurations, upstreamSettings } from "../config.ts";
