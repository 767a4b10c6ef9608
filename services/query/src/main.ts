import { runService } from "@tapedeck/shared/service/lifecycle";
import { createLogger } from "@tapedeck/shared/service/logger";
import { settingsSources } from "@tapedeck/shared/service/settings";
import { readConfig } from "./config.ts";
import { startQuery } from "./query.ts";

const log = createLogger("query");

await runService(log, async () => {
  const query = await startQuery(readConfig(settingsSources(process.env)), log);
  query.failed.catch((error: unknown) => {
    log.fatal(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
    process.kill(process.pid, "SIGTERM");
  });
  return query;
});
