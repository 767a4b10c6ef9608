import type { Case } from "./corpus.ts";

/** Numbers from 0 to below `below`, the same ones for a seed. */
export type Random = (below: number) => number;

const alphabets = {
  alnum: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
  lower: "abcdefghijklmnopqrstuvwxyz0123456789",
  upper: "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
  hex: "0123456789abcdef",
  word: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
  base32: "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
  bech32: "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
  digits: "0123456789",
  letters: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
  base64: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
} as const;
type Alphabet = keyof typeof alphabets;
type Part = string | readonly [Alphabet, number];
/** How a vendor's tokens look: fixed texts, and so many random characters of an alphabet. */
type Shape = readonly Part[];

const uuid: Shape = [["hex", 8], "-", ["hex", 4], "-", ["hex", 4], "-", ["hex", 4], "-", ["hex", 12]];
const jwtStart = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJ";

/** From the vendors' documentation and what they have GitHub's secret scanning look for. */
export const vendorTokens: Readonly<Record<string, Shape>> = {
  openai: ["sk-proj-", ["word", 74], "T3BlbkFJ", ["word", 74]],
  openaiService: ["sk-svcacct-", ["word", 74], "T3BlbkFJ", ["word", 74]],
  openaiLegacy: ["sk-", ["alnum", 20], "T3BlbkFJ", ["alnum", 20]],
  anthropic: ["sk-ant-api03-", ["word", 93], "AA"],
  anthropicAdmin: ["sk-ant-admin01-", ["word", 93], "AA"],
  openrouter: ["sk-or-v1-", ["hex", 64]],
  deepseek: ["sk-", ["hex", 32]],
  huggingFace: ["hf_", ["alnum", 34]],
  replicate: ["r8_", ["alnum", 37]],
  groq: ["gsk_", ["alnum", 52]],
  xai: ["xai-", ["alnum", 80]],
  perplexity: ["pplx-", ["alnum", 48]],
  langfuse: ["sk-lf-", ...uuid],
  langsmith: ["lsv2_pt_", ["hex", 32], "_", ["hex", 10]],
  nvidia: ["nvapi-", ["word", 64]],
  pinecone: ["pcsk_", ["alnum", 6], "_", ["alnum", 63]],
  elevenlabs: ["sk_", ["hex", 48]],
  together: ["tgp_v1_", ["word", 43]],
  tavily: ["tvly-dev-", ["alnum", 32]],
  cerebras: ["csk-", ["lower", 48]],
  voyage: ["pa-", ["word", 43]],
  github: ["ghp_", ["alnum", 36]],
  githubFine: ["github_pat_", ["alnum", 22], "_", ["alnum", 59]],
  githubApp: ["ghs_", ["alnum", 36]],
  gitlab: ["glpat-", ["word", 20]],
  gitlabRoutable: ["glpat-", ["word", 27], ".01.", ["lower", 9]],
  gitlabRunner: ["glrt-", ["word", 20]],
  gitlabRunnerRoutable: ["glrt-t1_", ["word", 27], ".01.", ["lower", 9]],
  gitlabDeploy: ["gldt-", ["word", 20]],
  gitlabTrigger: ["glptt-", ["hex", 40]],
  gitlabAgent: ["glagent-", ["word", 50]],
  gitlabJob: ["glcbt-64_", ["word", 20]],
  npm: ["npm_", ["alnum", 36]],
  pypi: ["pypi-AgEIcHlwaS5vcmc", ["word", 120]],
  docker: ["dckr_pat_", ["word", 27]],
  dockerOrg: ["dckr_oat_", ["word", 32]],
  rubygems: ["rubygems_", ["hex", 48]],
  cargo: ["cio", ["alnum", 32]],
  packagist: ["packagist_ort_", ["hex", 40]],
  nuget: ["oy2", ["lower", 43]],
  jfrog: ["AKCp8", ["alnum", 68]],
  jfrogReference: ["cmVmdGtuOjAxOj", ["alnum", 50]],
  slackBot: ["xoxb-", ["digits", 12], "-", ["digits", 13], "-", ["alnum", 24]],
  slackUser: ["xoxp-", ["digits", 12], "-", ["digits", 12], "-", ["digits", 13], "-", ["hex", 32]],
  slackApp: ["xapp-1-A", ["upper", 10], "-", ["digits", 13], "-", ["hex", 64]],
  slackConfig: ["xoxe.xoxp-1-", ["alnum", 164]],
  stripe: ["sk_live_51", ["alnum", 97]],
  stripeRestricted: ["rk_live_51", ["alnum", 97]],
  stripeWebhook: ["whsec_", ["alnum", 32]],
  twilio: ["SK", ["hex", 32]],
  sendgrid: ["SG.", ["word", 22], ".", ["word", 43]],
  mailgun: [["hex", 32], "-", ["hex", 8], "-", ["hex", 8]],
  mailchimp: [["hex", 32], "-us", ["digits", 2]],
  resend: ["re_", ["alnum", 8], "_", ["alnum", 24]],
  brevo: ["xkeysib-", ["hex", 64], "-", ["alnum", 16]],
  digitalocean: ["dop_v1_", ["hex", 64]],
  fly: ["FlyV1 fm2_", ["base64", 180]],
  flyLegacy: ["fo1_", ["word", 43]],
  vercel: ["vcp_", ["alnum", 56]],
  netlify: ["nfp_", ["alnum", 36]],
  cloudflare: ["cfut_", ["alnum", 48]],
  cloudflareOrigin: ["v1.0-", ["hex", 24], "-", ["hex", 146]],
  supabase: ["sbp_", ["hex", 40]],
  supabaseSecret: ["sb_secret_", ["word", 22], "_", ["word", 8]],
  neon: ["napi_", ["lower", 64]],
  planetscale: ["pscale_tkn_", ["word", 43]],
  planetscalePassword: ["pscale_pw_", ["word", 43]],
  databricks: ["dapi", ["hex", 32]],
  doppler: ["dp.st.prd.", ["alnum", 43]],
  dopplerPersonal: ["dp.pt.", ["alnum", 43]],
  vault: ["hvs.", ["word", 91]],
  vaultBatch: ["hvb.", ["word", 140]],
  terraform: [["alnum", 14], ".atlasv1.", ["word", 67]],
  pulumi: ["pul-", ["hex", 40]],
  grafana: ["glsa_", ["alnum", 32], "_", ["hex", 8]],
  grafanaCloud: ["glc_eyJ", ["base64", 120]],
  newRelic: ["NRAK-", ["upper", 27]],
  newRelicLicense: [["hex", 36], "NRAL"],
  newRelicInsert: ["NRII-", ["word", 32]],
  sentry: ["sntrys_eyJ", ["alnum", 80], "=_", ["base64", 43]],
  sentryUser: ["sntryu_", ["hex", 64]],
  linear: ["lin_api_", ["alnum", 40]],
  notion: ["ntn_", ["digits", 11], ["alnum", 35]],
  figma: ["figd_", ["word", 40]],
  postman: ["PMAK-", ["hex", 24], "-", ["hex", 34]],
  shopify: ["shpat_", ["hex", 32]],
  shopifySecret: ["shpss_", ["hex", 32]],
  square: ["EAAA", ["word", 60]],
  squareSecret: ["sq0csp-", ["word", 43]],
  mapbox: ["sk.eyJ1Ijoi", ["alnum", 60], ".", ["word", 22]],
  age: ["AGE-SECRET-KEY-1", ["bech32", 58]],
  azureClient: [["alnum", 3], "8Q~", ["word", 34]],
  azureOpenAi: [["alnum", 52], "JQQJ99BAACYeBjFXJ3w3AAABACOG", ["alnum", 4]],
  azureDevOps: [["alnum", 52], "JQQJ99BBACAAAAAAAAAAAAASAZDO", ["alnum", 4]],
  googleApi: ["AIza", ["word", 35]],
  googleOauth: ["ya29.a0", ["word", 160]],
  googleClient: ["GOCSPX-", ["word", 28]],
  awsId: ["AKIA", ["base32", 16]],
  awsBedrock: ["ABSK", ["base64", 128]],
  jwt: [jwtStart, ["alnum", 80], ".", ["word", 86]],
  tailscale: ["tskey-auth-", ["alnum", 17], "-", ["alnum", 32]],
  tailscaleClient: ["tskey-client-", ["alnum", 17], "-", ["alnum", 32]],
  onePassword: ["ops_eyJ", ["alnum", 250]],
  atlassian: ["ATATT3xFfGF0", ["word", 171], "=", ["upper", 8]],
  trello: ["ATTA", ["hex", 72]],
  buildkite: ["bkua_", ["hex", 40]],
  circleci: ["CCIPAT_", ["alnum", 22], "_", ["hex", 40]],
  sonar: ["squ_", ["hex", 40]],
  sonarProject: ["sqp_", ["hex", 40]],
  snykPat: ["snyk_uat.", ["hex", 8], ".", ["word", 160]],
  launchdarkly: ["sdk-", ...uuid],
  airtable: ["pat", ["alnum", 14], ".", ["hex", 64]],
  hubspot: ["pat-na1-", ...uuid],
  contentful: ["CFPAT-", ["word", 43]],
  posthog: ["phx_", ["alnum", 43]],
  dynatrace: ["dt0c01.", ["base32", 24], ".", ["base32", 64]],
  okta: ["00", ["word", 40]],
  discordBot: ["MT", ["alnum", 24], ".G", ["word", 5], ".", ["word", 38]],
  telegram: [["digits", 10], ":AA", ["word", 33]],
  prefect: ["pnu_", ["alnum", 36]],
  harness: ["pat.", ["word", 22], ".", ["hex", 24], ".", ["alnum", 20]],
  infisical: ["st.", ["hex", 24], ".", ["hex", 32], ".", ["hex", 32]],
  aiven: ["AVNS_", ["word", 19]],
  render: ["rnd_", ["alnum", 32]],
  wakatime: ["waka_", ...uuid],
  typeform: ["tfp_", ["word", 59]],
  alibaba: ["LTAI5t", ["alnum", 18]],
  yandex: ["y0_", ["word", 55]],
  wandb: ["wandb_v1_", ["word", 77]],
  e2b: ["e2b_", ["hex", 40]],
  sourcegraph: ["sgp_", ["hex", 16], "_", ["hex", 40]],
  easypost: ["EZAK", ["alnum", 54]],
  adobe: ["p8e-", ["word", 32]],
  mongoAtlas: ["mdb_sa_sk_", ["word", 40]],
  heroku: ["HRKU-AA", ["word", 58]],
  ngrok: ["2", ["alnum", 26], "_", ["alnum", 21]],
};
/** Without a name or a host around them these could be anything. */
const onlyNamed = new Set([
  "okta",
  "ngrok",
  "mailgun",
  "alibaba",
  "newRelicLicense",
  "voyage",
  "adobe",
  "cargo",
  "yandex",
  "airtable",
  "discordBot",
  "infisical",
  "harness",
]);

function randomText(shape: Shape, random: Random): string {
  return shape
    .map((part) => {
      if (typeof part === "string") return part;
      const from = alphabets[part[0]];
      return Array.from({ length: part[1] }, () => from.charAt(random(from.length))).join("");
    })
    .join("");
}

const words = "correct horse battery staple river stone apple winter falcon orbit candle mirror".split(" ");
const pick = <Value>(from: readonly Value[], random: Random): Value => from[random(from.length)] as Value;

/** Passwords as people and generators make them. */
function password(random: Random): string {
  const made: readonly (() => string)[] = [
    () => `${pick(words, random)}${pick(["-", "_", ".", ""], random)}${pick(words, random)}${random(100)}`,
    () => randomText([["alnum", 12 + random(20)]], random),
    () =>
      `${randomText([["letters", 5]], random)}${pick(["!", "#", "%", "*", "+", "?"], random)}${randomText([["alnum", 6]], random)}`,
    () => randomText([["hex", 32]], random),
    () => randomText([["word", 24]], random),
    () => `${randomText([["base64", 30]], random)}Q=`,
  ];
  return pick(made, random)();
}
const plainPassword = (random: Random) => randomText([["alnum", 14 + random(12)]], random);

/** Names of variables whose values are secret. */
const variables = [
  ..."DB_PASSWORD DB_PASS DB_PW DB_PWD APP_PW MYSQL_ROOT_PW SMTP_PWD ADMIN_PASS REDIS_PASSWORD PGPASSWORD MYSQL_PWD".split(
    " ",
  ),
  ..."GH_PAT GITHUB_PAT AZURE_DEVOPS_EXT_PAT ADO_PAT NPM_TOKEN GITHUB_TOKEN SLACK_BOT_TOKEN API_KEY OPENAI_API_KEY".split(
    " ",
  ),
  ..."AWS_SECRET_ACCESS_KEY CLIENT_SECRET JWT_SECRET SECRET_KEY_BASE ENCRYPTION_KEY TWILIO_AUTH_TOKEN DD_API_KEY DD_APP_KEY".split(
    " ",
  ),
  ..."COSIGN_PASSWORD RESTIC_PASSWORD VAULT_TOKEN SENTRY_AUTH_TOKEN CF_API_TOKEN KEYSTORE_PASS SSH_PASSPHRASE LDAP_BIND_PW".split(
    " ",
  ),
  ..."NEXTAUTH_SECRET RAILS_MASTER_KEY DJANGO_SECRET_KEY WIFI_PSK SESSION_SECRET BASIC_AUTH_PASS DATABASE_PASSWORD ORACLE_PWD".split(
    " ",
  ),
] as const;
/** Names of fields and settings. */
const fields = [
  ..."password dbPassword db_password client_secret clientSecret apiKey api_key accessToken access_token authToken".split(
    " ",
  ),
  ..."refresh_token secretKey secret_access_key passphrase adminPassword private_key_password bind_pw smtp_pw db_pw".split(
    " ",
  ),
  ..."rootPassword signingKey webhook_secret encryption-key auth-token bot_token".split(" "),
] as const;
const foreign = [
  ..."Passwort Kennwort contraseña senha пароль 密码 密碼 パスワード hasło wachtwoord lösenord heslo parola şifre".split(
    " ",
  ),
  ..."비밀번호 salasana adgangskode Contrasena haslo jelszó".split(" "),
  "mot de passe",
  "Mot de passe",
  "mot_de_passe",
] as const;

type Made = { readonly from: string; readonly text: string };
type Context = (random: Random) => Made;

/** A secret with its marks. */
const marked = (value: string) => `«${value}»`;
const time = (random: Random) => `2026-0${1 + random(9)}-1${random(10)}T0${random(10)}:1${random(10)}:2${random(10)}Z`;

function ofNames(name: string, value: string): readonly string[] {
  return [
    `${name}=${value}`,
    `export ${name}=${value}`,
    `export ${name}="${value}"`,
    `${name}='${value}' ./deploy.sh`,
    `${name}: ${value}`,
    `      - name: ${name}\n        value: "${value}"`,
    `{"name":"${name}","value":"${value}"}`,
    `docker run -e ${name}=${value} --rm app:latest`,
    `  "Env": ["PATH=/usr/bin", "${name}=${value}"]`,
    `\u001b[36m${name}\u001b[0m=\u001b[32m${value}\u001b[0m`,
    `${name}=\u001b[1;33m${value}\u001b[0m`,
    `\u001b[2m${name}\u001b[22m: \u001b[33m${value}\u001b[39m`,
    `declare -x ${name}="${value}"`,
    `+ ${name}=${value}`,
    `ENV ${name} ${value}`,
    `ENV ${name}=${value}`,
    `Traceback (most recent call last):\n  File "app.py", line 3\nEnvironmentError: {'${name}': '${value}', 'LANG': 'C'}`,
    `level=debug msg="starting" ${name}="${value}" port=8080`,
    `[build] env: map[HOME:/root ${name}:${value} PATH:/bin]`,
  ];
}

function ofFields(name: string, value: string): readonly string[] {
  return [
    `  ${name}: ${value}`,
    `  ${name}: "${value}"`,
    `{"user":"bob","${name}":"${value}","port":5432}`,
    `{\\"user\\":\\"bob\\",\\"${name}\\":\\"${value}\\"}`,
    `${name} = "${value}"`,
    `--${name.replaceAll("_", "-")} ${value} --verbose`,
    `--${name.replaceAll("_", "-")}=${value}`,
    `<${name}>${value}</${name}>`,
    `INFO config loaded ${name}="${value}" host=db`,
    `\u001b[34m"${name}"\u001b[0m: \u001b[32m"${value}"\u001b[0m,`,
    `{'${name}': '${value}', 'debug': True}`,
    `helm upgrade web ./chart --set ${name}=${value} --wait`,
    `java -D${name}=${value} -jar app.jar`,
  ];
}

/** Where tokens stand without a name of their own. */
function aroundTokens(value: string): readonly string[] {
  return [
    `remote: using ${value} for push`,
    `error: request with ${value} failed: 401 Unauthorized`,
    `time="2026-03-01" level=error msg="login with ${value}"`,
    `    at auth (/app/index.js:3:9) [token=${value}]`,
    `{"level":"debug","msg":"sent ${value}"}`,
    `curl -H "Authorization: Bearer ${value}" https://api.example.com/v1`,
    `echo '${value}' | login --stdin`,
    `value: "${value}"`,
    `\u001b[33m${value}\u001b[0m`,
  ];
}

const encode = (text: string) => encodeURIComponent(text);
const base64 = (text: string) => Buffer.from(text).toString("base64");

const contexts: readonly Context[] = [
  (random) => {
    const ids = Object.keys(vendorTokens).filter((id) => !onlyNamed.has(id));
    const id = pick(ids, random);
    return {
      from: `token ${id}`,
      text: pick(aroundTokens(marked(randomText(vendorTokens[id] ?? [], random))), random),
    };
  },
  (random) => {
    const id = pick(Object.keys(vendorTokens), random);
    const name = `${id.replace(/[A-Z].*/, "").toUpperCase()}_TOKEN`;
    return {
      from: `named token ${id}`,
      text: pick(ofNames(name, marked(randomText(vendorTokens[id] ?? [], random))), random),
    };
  },
  (random) => {
    const name = pick(variables, random);
    return { from: `variable ${name}`, text: pick(ofNames(name, marked(plainPassword(random))), random) };
  },
  (random) => {
    const name = pick(variables, random);
    return { from: `variable ${name}`, text: `${name}=${marked(password(random))}` };
  },
  (random) => {
    const name = pick(fields, random);
    return { from: `field ${name}`, text: pick(ofFields(name, marked(plainPassword(random))), random) };
  },
  (random) => {
    const name = pick(foreign, random);
    const value = marked(plainPassword(random));
    const forms = [
      `${name}: ${value}`,
      `${name} = ${value}`,
      `${name}=${value}`,
      `"${name}": "${value}"`,
      `${name}：${value}`,
      `INFO ${name}: ${value} OK`,
    ];
    return { from: `word ${name}`, text: pick(forms, random) };
  },
  (random) => {
    const value = marked(plainPassword(random));
    const forms = [
      `shop:${value}@tcp(db:3306)/shop?parseTime=true`,
      `dsn: "root:${value}@tcp(127.0.0.1:3306)/app"`,
      `user:${value}@unix(/var/run/mysqld/mysqld.sock)/db`,
      `jdbc:postgresql://db:5432/shop?user=shop&password=${value}`,
      `jdbc:mysql://db/shop?user=shop&password=${value}&useSSL=true`,
      `jdbc:sqlserver://db:1433;databaseName=shop;user=sa;password=${value};encrypt=true`,
      `Server=db;Database=shop;User Id=sa;Password=${value};TrustServerCertificate=True`,
      `Driver={ODBC Driver 18 for SQL Server};Server=db;Uid=sa;Pwd=${value};`,
      `Driver={PostgreSQL};Server=db;UID=shop;PWD={${value}};`,
      `host=db port=5432 user=shop password=${value} dbname=shop sslmode=require`,
      `mongodb+srv://shop:${value}@cluster0.abcde.mongodb.net/shop`,
      `redis://:${value}@cache:6379/0`,
      `rediss://default:${value}@cache:6380`,
      `amqp://guest:${value}@mq:5672/%2f`,
      `postgresql+asyncpg://shop:${value}@db/shop`,
      `jdbc:oracle:thin:shop/${value}@db:1521/XE`,
      `sqlplus shop/${value}@//db:1521/XE`,
      `clickhouse://default:${value}@ch:9000/default`,
      `smtp://mailer:${value}@smtp.example.com:587`,
      `DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=${marked(randomText([["base64", 86], "=="], random))};EndpointSuffix=core.windows.net`,
      `Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=${marked(randomText([["base64", 43], "="], random))}`,
      `https://shop.blob.core.windows.net/a?sv=2024-11-04&sp=r&sig=${marked(`${randomText([["alnum", 42]], random)}%3D`)}`,
      `cloudinary://123456789012345:${marked(randomText([["word", 27]], random))}@shop`,
    ];
    return { from: "dsn", text: pick(forms, random) };
  },
  (random) => {
    const raw = plainPassword(random);
    const name = pick(["password", "DB_PASSWORD", "token", "api_key", "client_secret", "SECRET_KEY"], random);
    const forms = [
      `GET /login?next=%2F%3F${name}%3D${marked(raw)}%26x%3D1`,
      `body: ${encode(`{"user":"bob","${name}":"`)}${marked(raw)}${encode('"}')}`,
      `redirect_uri=https%3A%2F%2Fh%2Fcb%3F${name}%3D${marked(raw)}`,
      `user=bob&${name}=${marked(encode(`${raw}+/=`))}&submit=1`,
      `data: ${marked(base64(`${name}=${raw}`))}`,
      `echo ${marked(base64(`user=bob\n${name}=${raw}\n`))} | base64 -d`,
      `payload ${marked(base64(JSON.stringify({ user: "bob", [name]: raw })))}`,
    ];
    return { from: "encoded", text: pick(forms, random) };
  },
  (random) => {
    const raw = plainPassword(random);
    const value = marked(raw);
    const basic = marked(base64(`bob:${raw}`));
    const forms = [
      `Authorization: Basic ${basic}`,
      `> authorization: Basic ${basic}`,
      `curl -u bob:${value} https://h/x`,
      `curl -sSf --user 'bob:${value}' https://h/x`,
      `wget --user=bob --password=${value} https://h/x`,
      `docker login -u bob -p ${value} registry.example.com`,
      `podman login --password ${value} quay.io`,
      `echo ${value} | docker login --username bob --password-stdin`,
      `mysql -u root -p${value} shop`,
      `mysqldump -uroot -p'${value}' shop`,
      `PGPASSWORD=${value} psql -h db shop`,
      `psql "host=db user=shop password=${value}"`,
      `sshpass -p ${value} ssh bob@h`,
      `redis-cli -h cache -a ${value} ping`,
      `mongosh -u root -p ${value} --authenticationDatabase admin`,
      `kubectl create secret generic db --from-literal=password=${value}`,
      `htpasswd -bc .htpasswd bob ${value}`,
      `az login --service-principal -u app -p ${value} --tenant t`,
      `aws configure set aws_secret_access_key ${marked(randomText([["base64", 40]], random))}`,
      `vault login ${marked(randomText(["hvs.", ["word", 24]], random))}`,
      `vault kv put secret/db password=${value}`,
      `cypher-shell -u neo4j -p ${value}`,
      `rabbitmqctl add_user shop ${value}`,
      `7z x -p${value} backup.7z`,
      `ipmitool -H bmc -U admin -P ${value} power status`,
      `machine api.example.com login bob password ${value}`,
      `machine github.com\n  login bob\n  password ${value}\n`,
      `//registry.npmjs.org/:_authToken=${value}`,
      `//npm.example.com/:_password=${marked(base64(raw))}`,
      `_auth=${basic}`,
      `[pypi]\nusername = __token__\npassword = ${value}\n`,
      `"auths":{"ghcr.io":{"auth":"${basic}"}}`,
      `users:\n- name: admin\n  user:\n    token: ${value}\n`,
      `    client-key-data: ${marked(randomText(["LS0tLS1CRUdJTi", ["base64", 120]], random))}`,
      `bob:${marked(`$apr1$${randomText([["alnum", 8]], random)}$${randomText([["alnum", 22]], random)}`)}`,
      `apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  value: ${marked(base64(raw))}\n`,
      `Cookie: session=${marked(randomText([["alnum", 32]], random))}`,
      `X-Api-Key: ${value}`,
      `-H 'PRIVATE-TOKEN: ${value}'`,
      `gpg --batch --passphrase ${value} --decrypt x.gpg`,
      `openssl enc -aes-256-cbc -k ${value} -in a`,
      `snowsql -a acme -u bob --password ${value}`,
      `sqlcmd -S db -U sa -P ${value} -Q "select 1"`,
    ];
    return { from: "command or file", text: pick(forms, random) };
  },
];

const wrappers: readonly ((text: string, random: Random) => string)[] = [
  (text) => text,
  (text) => text,
  (text, random) => `${time(random)} ${text}`,
  (text) => `#12 3.412 ${text}`,
  (text) => `[web] ${text}`,
  (text) => `Step 4/9 : RUN true\n${text}\n ---> 1f3a9c`,
];

export function secretTexts(random: Random, count: number): Case[] {
  return Array.from({ length: count }, (_, at) => {
    const { from, text } = (contexts[at % contexts.length] as Context)(random);
    // A file's text stands at the beginning of its lines.
    const isFile = /^(?:\w+:$|\[|apiVersion|machine|users|\/\/|_auth|bob:|ENV |declare|Traceback| {2})/m.test(text);
    return { from, text: isFile ? text : pick(wrappers, random)(text, random) };
  });
}

/** What resembles secrets and is none. */
const plain: readonly ((random: Random) => string)[] = [
  (random) => `commit ${randomText([["hex", 40]], random)}`,
  (random) => `Digest: sha256:${randomText([["hex", 64]], random)}`,
  (random) => `ghcr.io/acme/web@sha256:${randomText([["hex", 64]], random)}`,
  (random) => `request ${randomText(uuid, random)} took 31 ms`,
  (random) => `"integrity": "sha512-${randomText([["base64", 86]], random)}=="`,
  (random) => `github.com/pkg/errors v0.9.1 h1:${randomText([["base64", 43]], random)}=`,
  (random) => `github.com/pkg/errors v0.9.1/go.mod h1:${randomText([["base64", 43]], random)}=`,
  (random) => `#8 sha256:${randomText([["hex", 64]], random)} 3.62MB / 3.62MB 0.4s done`,
  (random) => `etag: "${randomText([["hex", 32]], random)}"`,
  (random) => `trace_id=${randomText([["hex", 32]], random)} span_id=${randomText([["hex", 16]], random)}`,
  (random) => `  encryptedData:\n    password: ${randomText(["AgB", ["base64", 200]], random)}`,
  (random) =>
    `apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nspec:\n  encryptedData:\n    token: ${randomText(["AgA", ["base64", 180]], random)}\n`,
  (random) =>
    `password: ENC[AES256_GCM,data:${randomText([["base64", 12]], random)},iv:${randomText([["base64", 43]], random)}=,tag:${randomText([["base64", 22]], random)}==,type:str]`,
  (random) => `db.password=ENC(${randomText([["base64", 32]], random)})`,
  (random) => `spring.datasource.password: '{cipher}${randomText([["hex", 64]], random)}'`,
  (random) => `password: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  ${randomText([["digits", 64]], random)}`,
  (random) => `SHA256:${randomText([["base64", 43]], random)} bob@laptop (ED25519)`,
  (random) => `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${randomText([["base64", 43]], random)} bob@laptop`,
  (random) => `-rw-r--r-- 1 root root 1${random(9)}23 secrets.yaml`,
];
const plainLines = String.raw`
password = os.environ["DB_PASSWORD"]
API_KEY = os.environ.get("API_KEY")
token = os.getenv("GITHUB_TOKEN")
const apiKey = process.env.OPENAI_API_KEY;
const token = process.env["NPM_TOKEN"] ?? "";
password: process.env.DB_PASSWORD,
secret: process.env.JWT_SECRET!,
db_password = var.db_password
password = var.master_password
token = local.token
secret_key = data.aws_secretsmanager_secret_version.db.secret_string
password = random_password.db.result
password = module.db.password
DB_PASSWORD: \${DB_PASSWORD}
DB_PASSWORD=$DB_PASSWORD
password: "\${{ secrets.DB_PASSWORD }}"
token: \${{ secrets.GITHUB_TOKEN }}
GITHUB_TOKEN: \${{ github.token }}
password: {{ .Values.db.password }}
password: "{{ vault_db_password }}"
password: {{ lookup('env', 'DB_PASSWORD') }}
  password: string;
  password: string
  apiKey?: string;
  token: string | undefined;
  password: str
  password: Optional[str] = None
  api_key: SecretStr
  token: Option<String>,
  secret: &str,
  password string
private String password;
String apiKey = System.getenv("API_KEY");
password := os.Getenv("DB_PASSWORD")
token = ENV["GITHUB_TOKEN"]
token = ENV.fetch("GITHUB_TOKEN")
password = getpass.getpass()
password = config.get("db.password")
password = settings.DB_PASSWORD
self.password = password
this.token = token;
user.password = hash(password)
const token = await getToken();
const { password } = req.body;
if (password !== confirmPassword) return;
func WithPassword(password string) Option
def login(user: str, password: str) -> Token:
build-secrets: deps
get-token: build-cli
generate-keys: install tools
check-password: lint
rotate-secrets: fetch-keys
.PHONY: token secrets
print-token: ; @true
secretName: db-credentials
secretKeyRef:
imagePullSecrets:
tokenUrl: https://auth.example.com/token
token_endpoint: https://auth.example.com/oauth/token
password_policy: strong
passwordMinLength: 12
max_tokens: 4096
TOKEN_EXPIRY=3600
PASSWORD_FILE=/run/secrets/db
KEY_PATH=/etc/ssl/private/tls.key
ssh_key_path: ~/.ssh/id_ed25519
password_hash_algorithm: argon2id
auth: basic
authentication: none
Enter password:
Password:
Passwort eingeben:
Mot de passe oublié ?
пароль неверный
wrong password for user bob
error: invalid token at line 3
Unexpected token } in JSON at position 12
SyntaxError: Unexpected token '<'
missing required key: name
primary_key: id
sort_key=created_at
keyboard: us
monkey=banana
GET /v1/tokens?limit=20 200
DELETE /api/keys/12 204
kubectl get secret db -o yaml
kubectl create secret generic db --from-env-file=.env
vault kv get secret/db
docker login -u bob --password-stdin registry.example.com
docker run -p 8080:80 nginx
mysql -u root -p shop
mysql -P 3306 -h db
psql -U postgres -h db
curl -u "$USER:$PASSWORD" https://h
curl -H "Authorization: Bearer $TOKEN" https://h
curl -H "Authorization: Bearer \${TOKEN}" https://h
git clone https://github.com/acme/web.git
https://user@host/path
postgres://db:5432/shop
postgres://\${DB_USER}:\${DB_PASS}@db/shop
redis://cache:6379/0
jdbc:postgresql://db:5432/shop
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
PASS src/login.test.ts
--- PASS: TestToken (0.00s)
tests: 12 passed, 0 failed
token bucket refilled
secrets: [db, api]
secret/db created
serviceaccount/deployer created
Successfully built 3b1f9ac2e77d
npm warn deprecated har-validator@5.1.5
added 312 packages in 9s
go: downloading golang.org/x/crypto v0.31.0
downloading https://registry.npmjs.org/jsonwebtoken/-/jsonwebtoken-9.0.2.tgz
  Compiling secrecy v0.8.0
Collecting tokenizers==0.15.2
COPY package.json package-lock.json ./
ARG NPM_TOKEN
RUN --mount=type=secret,id=npm_token npm ci
--secret id=npm,src=.npmrc
valueFrom: {secretKeyRef: {name: db, key: password}}
key: password
name: DB_PASSWORD
op://prod/db/password
password: op://prod/db/password
password: ref+vault://secret/db#password
password: vault:secret/data/db#password
password_arn: arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-AbCdEf
api_token: <your-token>
password: ********
password=[REDACTED]
token: null
password: ""
`
  .trim()
  .split("\n")
  .map((line) => line.replaceAll("\\$", "$"));

export function plainTexts(random: Random, count: number): Case[] {
  return Array.from({ length: count }, (_, at) => {
    const text = at % 2 === 0 ? (plainLines[(at / 2) % plainLines.length] as string) : pick(plain, random)(random);
    return { from: "no secret", text };
  });
}
