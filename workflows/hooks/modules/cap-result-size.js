// Cuts the texts of a result where they are too long together.
export default function (context) {
  const { limit } = context.variables;
  let left = limit;
  let dropped = 0;
  const cut = (text) => {
    // Half of a surrogate pair is no character.
    const kept = text.length > left ? text.slice(0, left).replace(/[\uD800-\uDBFF]$/, "") : text;
    left -= kept.length;
    dropped += text.length - kept.length;
    return kept;
  };
  for (const part of context.response.content) {
    if (part.type === "text") {
      part.text = cut(part.text);
    } else if (part.type === "resource" && typeof part.resource?.text === "string") {
      part.resource.text = cut(part.resource.text);
    }
  }
  if (context.response.structuredContent !== undefined) {
    // Its form stays, for clients that check it; what is long in it does not.
    left = limit;
    context.response.structuredContent = mapStrings(context.response.structuredContent, cut);
  }
  if (dropped > 0) {
    context.response.content.push({
      type: "text",
      text: `[The result was cut: ${dropped} characters are left out. Ask for less, or for a part.]`,
    });
    console.log(`${dropped} characters cut`);
  }
}
