import { describe, expect, it } from "vitest";
import { type Claims, callerFrom, personOf, textsAt } from "./claims.ts";
import type { Grant } from "./settings.ts";

const grants: readonly Grant[] = [
  { claim: "groups", value: "developers", roles: ["viewer", "controller"], workspace: "acme" },
  { claim: "groups", value: "admins", roles: ["admin"], workspace: "acme" },
  { claim: "realm_access.roles", value: "recorders", roles: ["recorder"], workspace: "acme" },
  { claim: "groups", value: "globex", roles: ["viewer"], workspace: "globex" },
  { claim: "email", value: "eve@acme.example", roles: ["viewer"], workspace: "acme" },
];
const settings = {
  issuer: "https://sso.example/realms/acme",
  grants,
  nameClaim: "preferred_username",
  developerClaim: "preferred_username",
};
const caller = (claims: Claims) => callerFrom(personOf({ sub: "u-1", ...claims }, settings), settings);
const alice = { preferred_username: "Alice.B", groups: ["developers", "others"] };

describe("a person", () => {
  it("has the roles of the grants that are met, in their workspace, and is a person whatever the name", () => {
    expect(caller(alice)).toEqual({
      workspace: "acme",
      who: "Alice.B (sso.example)",
      kind: "person",
      token: "https://sso.example/realms/acme u-1",
      roles: new Set(["viewer", "controller"]),
      developer: "alice-b",
    });
    expect(caller({ ...alice, groups: ["admins"] }).roles).toEqual(new Set(["admin"]));
    expect(caller({ ...alice, realm_access: { roles: ["recorders"] } }).roles).toContain("recorder");
    expect(caller({ groups: "developers" }).who).toBe("u-1 (sso.example)");
  });

  it.each([
    [{}, /there is no claim "groups", which should have "developers" or "admins" or "globex".*"realm_access.roles"/],
    [{ groups: ["sales"] }, /"groups" does not have "developers" or "admins"/],
    [{ groups: [] }, /there is no claim "groups"/],
    [{ groups: ["Developers"] }, /"groups" does not have/],
    [{ groups: "developers,admins" }, /"groups" does not have/],
    [{ groups: { developers: true } }, /there is no claim "groups"/],
    [{ groups: [["admins"]] }, /there is no claim "groups"/],
    [{ groups: [true] }, /there is no claim "groups"/],
    [{ roles: ["admin"], role: "admin", workspace: "acme", everywhere: true }, /no entry of oidc.grants matches/],
    [{ realm_access: "recorders" }, /no entry of oidc.grants matches/],
    [{ email: "eve@acme.example" }, /"email" is not verified/],
    [{ email: "eve@acme.example", email_verified: "true" }, /"email" is not verified/],
  ])("with %j has no role, and the refusal says what is missing", (claims, words) => {
    expect(() => caller(claims)).toThrow(words);
  });

  it("has a verified address", () => {
    expect(caller({ email: "eve@acme.example", email_verified: true }).roles).toEqual(new Set(["viewer"]));
  });

  it("of two workspaces is refused, as is a recorder of whom nobody says whose work it is", () => {
    expect(() => caller({ groups: ["developers", "globex"] })).toThrow(/in several workspaces \(acme and globex\)/);
    expect(() => caller({ realm_access: { roles: ["recorders"] } })).toThrow(/claim "preferred_username".* is missing/);
  });

  it("is never an admin of all workspaces", () => {
    expect(caller({ groups: ["admins"], everywhere: true })).not.toHaveProperty("everywhere");
  });

  it("has a name without control characters, and of a bounded length", () => {
    const { who } = caller({ ...alice, preferred_username: `ali\nce\u202e${"x".repeat(500)}` });
    expect(who).toMatch(/^alicex+ \(sso\.example\)$/);
    expect(who.length).toBeLessThan(120);
  });
});

it("decides again what a session may, with the settings of now", () => {
  const person = personOf({ sub: "u-1", ...alice, groups: ["developers", "admins", "others"] }, settings);
  expect(person.has).toEqual([
    ["groups", "developers"],
    ["groups", "admins"],
  ]);
  const without = (value: string) => ({ ...settings, grants: grants.filter((grant) => grant.value !== value) });
  expect(callerFrom(person, without("admins")).roles).toEqual(new Set(["viewer", "controller"]));
  expect(() => callerFrom({ ...person, has: [] }, settings)).toThrow("sign in again");
});

it("claims may have dots in their names, and what an object inherits is none", () => {
  expect(textsAt({ "https://acme.example/roles": ["a", "b"] }, "https://acme.example/roles")).toEqual(["a", "b"]);
  expect(textsAt({ a: { b: { c: "d" } } }, "a.b.c")).toEqual(["d"]);
  expect(textsAt({}, "constructor.name")).toEqual([]);
  expect(textsAt({ a: "text" }, "a.length")).toEqual([]);
});
