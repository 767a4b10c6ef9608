import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { maskText } from "./mask-text.ts";

const stars = (length: number) => "*".repeat(length);
/** `«secret»` marks what must be masked. */
const input = (marked: string) => marked.replace(/[«»]/g, "");
const output = (marked: string) =>
  marked.replace(/«([^»]*)»/g, (_, secret: string) =>
    secret.replace(/[^\n]+/g, (part) => stars(Buffer.byteLength(part))),
  );

const masked: readonly string[] = [
  // environments
  "DB_PASSWORD=«hunter2»",
  "A=1 DB_PASSWORD=«hunter2» HOME=/root",
  'export GITHUB_TOKEN="«a b c»" X=1',
  "SECRET_KEY_BASE='«x=y;z»'",
  "docker build --build-arg NPM_TOKEN=«abc» .",
  '["A=1","NPM_TOKEN=«abc»","B=2"]',
  '{\\"Env\\":[\\"NPM_TOKEN=«abc»\\",\\"B=2\\"]}',
  "aws_secret_access_key = «abcd»\nregion = us-east-1",
  "user=bob password=«s3cret,with;stuff» host=db",
  "TOKEN=«pässwörd»",
  "MYKEY=«abc» SIGNING_KEY=«d»",
  "SMTP_PASS=«abc»",
  "TOKEN=«a» PASSWORD=«string»",
  "TOKEN=«abc\\def»",
  "INPUT=a\\nTOKEN=«abc»\\nHOME=/root",
  "https://h/path?access_token=«abc»&x=y",
  "//registry.npmjs.org/:_authToken=«abc»",
  // JSON, YAML, TOML
  '{"password": "«hunter2»", "user": "bob"}',
  '{"apiKey":"«a\\"b»","n":1}',
  '{\\"client_secret\\": \\"«x»\\", \\"id\\": 1}',
  '{"token":«12345678901»}',
  "spring:\n  password: «hunter 2»  # not this\n  user: bob",
  "- dbPassword: «x»",
  "{user: bob, password: «x», port: 1}",
  "secrets:\n  token: |\n    «line1»\n    «line2»\n  next: 1".replace(
    "|\n    «line1»\n    «line2»",
    "|«\n    line1\n    line2»",
  ),
  "log prefix DB_PASSWORD: «hunter2»",
  'password = "«x»"',
  "const apiKey = '«x»';",
  // name and value apart
  "- name: DB_PASSWORD\n  value: «hunter2»\n- name: X\n  value: y",
  '{"name":"DB_PASSWORD","value":"«hunter2»"}',
  "{Name:API_TOKEN Value:«hunter2» ValueFrom:nil}",
  // flags
  "docker login --username bob --password «hunter2» registry",
  "tool --api-key=«abc» --token '«x y»'",
  // Go's dumps
  "with environment map[DB_PASSWORD:«a b]c d» HOME:/root PATH:/bin:/usr/bin]\n",
  "map[A:x Z_TOKEN:«last one»]\nnext line",
  "exec [A=1 DB_PASSWORD=«a b c» HOME=/root] done",
  "map[SSH_KEY:«two\nlines» Z:1]\n",
  // shapes
  `push with ghp_${"a".repeat(36)}`.replace(/(ghp_\w+)/, "«$1»"),
  `x=github_pat_${"a1_".repeat(10)}.`.replace(/(github_pat_\w+)/, "«$1»"),
  "key id «AKIAIOSFODNN7EXAMPLE» used",
  `url «AIza${"B".repeat(35)}»`,
  `«sk_live_${"a".repeat(20)}» «dckr_pat_${"b".repeat(24)}» «hvs.${"c".repeat(24)}» «pypi-${"d".repeat(60)}»`,
  `«sk-proj-${"e".repeat(24)}» «ya29.${"f".repeat(24)}» https://«hooks.slack.com/services/${"G/".repeat(12)}»`,
  "hook «xoxb-1234567890-abcdef»",
  "jwt «eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N»!",
  `recorded with «tdk_${"aZ0_-".repeat(8)}xyz», and tapedeck.bearer.«tdk_${"-".repeat(43)}»`,
  `«npm_${"x".repeat(36)}» «glpat-${"y".repeat(20)}»`,
  "-----BEGIN RSA PRIVATE KEY-----«\nMIIE\nabc\n»-----END RSA PRIVATE KEY-----\n",
  "-----BEGIN PRIVATE KEY-----«\nMIIEcut off»",
  "Authorization: Bearer «abc123def456»",
  "map[Authorization:[Basic «dXNlcjpwYXNz»] Accept:[*/*]]",
  '"authorization": "token «0123456789abcdef»"',
  "curl -H 'Authorization: Bearer «abc123def456»' https://x",
  "postgres://bob:«hunter2»@db:5432/x and https://«»example.com:80/a@b",
  "redis://:«p@ss»@host",
];

const untouched: readonly string[] = [
  "",
  "monkey=banana KEYBOARD_LAYOUT=us keyboard: us",
  "cacheKey=web key=value Key: Value primary_key: id",
  "SyntaxError: Unexpected token: punc (})",
  "const token = nextToken();",
  "if (token==other) return token => token.value",
  "secret.go:12:5: undefined: password",
  "secretName: my-secret\nsecretKeyRef:\n  name: db",
  "kind: Secret\nmetadata:\n  name: db-credentials",
  "automountServiceAccountToken: false",
  "max_tokens=100 total-tokens: 5",
  "USE_TOKEN=true PASSWORD= TOKEN=null",
  "PASSWORD=******",
  "tests passed: 5, password prompt",
  "basic authentication, authorization: required",
  "PWD=/srv/demo OLDPWD=/",
  "http://host:8080/path?x=1@2 git@github.com:a/b ssh://git@host:22/x",
  "Token::new() std::token::Kind",
  "- web: Not found. Building",
  "map[cache_key:x HOME:/root]",
  "eyJ is no token, ghp_short neither",
  '"tokens": ["a", "b"]',
];

describe("maskText", () => {
  it.each(masked)("masks %s", (marked) => {
    const { text, secrets } = maskText(input(marked));
    expect(text).toBe(output(marked));
    expect(secrets).toBe([...marked.matchAll(/«[^»]/g)].length);
  });

  it.each(untouched)("leaves %s", (text) => expect(maskText(text)).toEqual({ text, secrets: 0 }));

  it("keeps the length in bytes, and finds nothing in what it has masked", () => {
    const words = [
      "PASSWORD",
      "token",
      "apiKey",
      "=",
      ":",
      ": ",
      '"',
      "\\",
      "\n",
      " ",
      "map[",
      "]",
      "{",
      "://",
      "@",
      "é",
      "😀",
      "--",
      "name: ",
      "value: ",
      "ghp_",
      "a",
      "Bearer ",
      "-----BEGIN PRIVATE KEY-----",
    ];
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.constantFrom(...words), fc.string()), { maxLength: 40 }), (parts) => {
        const text = parts.join("");
        const once = maskText(text);
        expect(Buffer.byteLength(once.text)).toBe(Buffer.byteLength(text));
        expect(once.text.split("\n").length).toBe(text.split("\n").length);
        expect(maskText(once.text).text).toBe(once.text);
      }),
      { numRuns: 2000, examples: [[["PASSWORD", "://", ":", ")", "@"]]] },
    );
  });

  const pieces = [
    "key",
    "KEY=",
    "token: ",
    "password",
    'password="',
    "password='a\\",
    "map[",
    "map[a:",
    "map[TOKEN:x ",
    "[A=",
    "eyJ",
    "eyJaaaaaaaa.",
    "://",
    "://a:",
    "authorization=",
    "authorization: Basic ",
    "bearer a",
    "-----BEGIN PRIVATE KEY-----",
    "name: TOKEN ",
    "--token ",
    "\\",
    '\\"',
    "ghp_",
    "github_pat_",
    "a",
    " ",
    "\n",
    "TOKEN: |\n",
    "token = a(",
    "secret_",
    "-",
    "xoxb-",
    "AKIA",
    "TOKEN=a\\",
    "pass.",
    "TOKEN=a ",
  ];
  const more = [
    '"',
    "{",
    "<password>",
    "curl -u a:b ",
    "kind: Secret\ndata:\n  a: b\n",
    '{"kind":"Secret","data":{"a":"b"}}',
    "://a:@b:",
    "cookie: a=bcdefgh;",
    "password is a",
    "thin:a/b",
    "unseal key 1: ",
    "webhook.office.com/webhookb2/",
    "a.atlasv1.",
    "Private-Lines: 1\n",
    "\u001b[31m",
    "TOKEN=\u001b[1mabc ",
    "token%3Dabc%26",
    "%22password%22%3A%22",
    "passwort: ",
    "пароль=a",
    "cGFzc3dvcmQ",
    "UEFTU1dPUkQ9",
    "a:b@tcp(",
    ";PWD={a",
    "password=a,b=",
    "password: a.a(",
    "password: user.a\n",
    "user.a(",
    "user.a()",
    "password: user.a-",
    "TOKEN=data[a(",
    "get-token: a ",
  ];
  /** The least processor time of this thread, in µs: it does not depend on what else the machine does. */
  const leastWork = (text: string, runs = 3) => {
    const times = Array.from({ length: runs }, () => {
      const before = process.threadCpuUsage();
      maskText(text);
      const { user, system } = process.threadCpuUsage(before);
      return user + system;
    });
    return Math.min(...times);
  };
  it.each([...pieces, ...more])("takes work in proportion to the length of much of %j", (piece) => {
    const [short = "", long = ""] = [8_000, 128_000].map((length) => piece.repeat(Math.ceil(length / piece.length)));
    leastWork(long.slice(0, 30_000));
    const growth = () => leastWork(long) / Math.max(leastWork(short), 500);
    // 16 times the text; were work to grow with its square, 256 times the work. What others do to the caches of a busy
    // machine, and a collection of garbage, are no growth: it is measured again.
    let least = growth();
    for (let again = 0; again < 4 && least >= 100; again++) least = Math.min(least, growth());
    expect(least).toBeLessThan(100);
  });

  /** What makes a rule look at the rest of a line. */
  const beginnings = ["htpasswd -", "curl -", "docker login ", "wpa_passphrase ", "mysql ", "podman --creds "].concat(
    ["sqlplus ", "net use ", "echo x | chpasswd ", "| docker --password-stdin ", "identified by ", "password="],
    ["composer config http-basic.", "DB_PASSWORD=", '"password":', "create secret --from-literal=", "postgres://"],
    ["kind: Secret\ndata:\n", "set password for ", "Authorization: Basic "],
  );
  const repeated = ["bn", "b ", "a/", "/", "=", "a=", "a,", "'", "`", "\t", ";", "|", "[", "(", "}", "$"].concat(
    ["\\", "\\\n", 'x="', "echo ", "printf -a ", "docker ", "-p ", "-u ", "wpa_passphrase ", "net  use "],
    ["create  secret ", "login ", "upload ", "http-basic.a ", "identified by ", "password "],
  );
  it.each(beginnings)("takes work in proportion to the length of what follows %j", (beginning) => {
    const textOf = (piece: string, length: number) => `${beginning}${piece.repeat(Math.ceil(length / piece.length))} x`;
    // 16 times the text, as above, on a line that is short enough for a command.
    const growth = (piece: string) =>
      leastWork(textOf(piece, 16_000), 1) / Math.max(leastWork(textOf(piece, 1_000)), 250);
    const grows = (piece: string) => [1, 2, 3, 4, 5].every(() => growth(piece) >= 100);
    expect(repeated.filter(grows)).toEqual([]);
  });

  it("masks more secrets in a text than a call takes arguments", () => {
    const { text, secrets } = maskText("TOKEN=abc ".repeat(200_000));
    expect(secrets).toBe(200_000);
    expect(text.slice(0, 20)).toBe("TOKEN=*** TOKEN=*** ");
  });
});

it("a long run of spaces in the line of a Secret's kind takes no quadratic time", () => {
  const before = process.cpuUsage();
  const text = `kind: Secret\n---\nkind: a${" ".repeat(100_000)}b`;
  expect(maskText(text).text).toBe(text);
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_500);
});
