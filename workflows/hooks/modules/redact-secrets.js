// Takes what looks like a secret out of all texts and member names of a response.
export default function (context) {
  const { patterns, replacement } = context.variables;
  const known = [
    /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
    /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/g,
    /\bgh[pousr]_[0-9A-Za-z]{36,}\b/g,
    /\bgithub_pat_[0-9A-Za-z_]{22,}\b/g,
    /\bxox[abeoprs]-[0-9A-Za-z-]{10,}\b/g,
    /\bsk-[0-9A-Za-z_-]{20,}/g,
    /\beyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,}/g,
    ...patterns.map((pattern) => new RegExp(pattern, "g")),
  ];
  // Of these only the value is taken out, not what it is the value of.
  const named = /\b((?:[\w-]*(?:password|passwd|secret|token|api[_-]?key))["']?\s*[:=]\s*["']?)([^\s"',;]{6,})/gi;
  const bearer = /\b(authorization["']?\s*[:=]\s*["']?(?:bearer|basic)\s+)([^\s"',;]+)/gi;
  const address = /(:\/\/[^\s/:@"'<>]*:)([^\s/"'<>]+)(?=@)/g;
  const secretName = /(?:password|passwd|secret|token|api[_-]?key)$/i;

  let count = 0;
  const redact = (text) => {
    let clean = text;
    for (const pattern of known) {
      clean = clean.replace(pattern, () => (count++, replacement));
    }
    for (const pattern of [bearer, address, named]) {
      clean = clean.replace(pattern, (all, name, value) => (value === replacement ? all : (count++, name + replacement)));
    }
    return clean;
  };
  // Two names that become equal must not replace each other's values.
  const freeName = (taken, name) => {
    let free = name;
    for (let n = 2; taken.has(free); n++) {
      free = `${name} ${n}`;
    }
    taken.add(free);
    return free;
  };
  const clean = (value, secret = false) => {
    if (typeof value === "string") {
      return secret && value !== "" && value !== replacement ? (count++, replacement) : redact(value);
    }
    if (Array.isArray(value)) {
      return value.map((each) => clean(each, secret));
    }
    if (value === null || typeof value !== "object") {
      return value;
    }
    const taken = new Set();
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [freeName(taken, redact(name)), clean(each, secretName.test(name))]),
    );
  };

  const { content, ...rest } = context.response;
  context.response = clean(rest);
  context.response.content = content.map((part) => {
    // Pictures and sounds are texts too, and no words.
    const { data, ...words } = part;
    return data === undefined ? clean(words) : { ...clean(words), data };
  });
  if (count > 0) {
    console.log(`${count} redacted`);
  }
}
