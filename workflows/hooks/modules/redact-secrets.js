// Takes what looks like a secret out of all texts and member names of a response.
export default function (context) {
  const { patterns, replacement } = context.variables;
  const more = patterns.map((pattern) => new RegExp(pattern, "g"));

  let count = 0;
  const cleanText = (text) => {
    const clean = more.reduce((text, pattern) => text.replace(pattern, () => replacement), redact(text, replacement));
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
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [freeName(taken, cleanText(name)), clean(each, namesSecret(name))]),
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
    console.log(`${count} texts redacted`);
  }
}
