// Takes what looks like a secret out of all texts and member names of a response, an
// error or a progress message.
export default function (context) {
  const { patterns, replacement, personalData } = context.variables;
  const more = patterns.map((pattern) => new RegExp(pattern, "g"));

  let count = 0;
  const cleanText = (text) => {
    const clean = more.reduce((text, pattern) => text.replace(pattern, () => replacement), redact(text, replacement, personalData));
    count += clean === text ? 0 : 1;
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
      return secret && value !== "" && value !== replacement ? (count++, replacement) : cleanText(value);
    }
    if (Array.isArray(value)) {
      return value.map((each) => clean(each, secret));
    }
    if (value === null || typeof value !== "object") {
      return value;
    }
    const taken = new Set();
    return Object.fromEntries(Object.entries(value).map(([name, each]) => {
      // Pictures, sounds and files are texts too, and no words.
      const encoded = (name === "data" || name === "blob") && typeof each === "string" && typeof value.mimeType === "string";
      return [freeName(taken, cleanText(name)), encoded ? each : clean(each, namesSecret(name))];
    }));
  };

  for (const part of ["response", "error", "progress"]) {
    if (context[part] !== undefined) {
      context[part] = clean(context[part]);
    }
  }
  if (count > 0) {
    console.log(`${count} texts redacted`);
  }
}
