// Takes what looks like a secret out of all texts of a response.
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

  let count = 0;
  const redact = (text) => {
    let clean = text;
    for (const pattern of known) {
      clean = clean.replace(pattern, () => (count++, replacement));
    }
    for (const pattern of [bearer, named]) {
      clean = clean.replace(pattern, (all, name, value) => (value === replacement ? all : (count++, name + replacement)));
    }
    return clean;
  };

  const { content, ...rest } = context.response;
  context.response = mapStrings(rest, redact);
  context.response.content = content.map((part) => {
    // Pictures and sounds are texts too, and no words.
    const { data, ...words } = part;
    const clean = mapStrings(words, redact);
    return data === undefined ? clean : { ...clean, data };
  });
  if (count > 0) {
    console.log(`${count} redacted`);
  }
}
