import type { CompletionContext, CompletionResult, CompletionSource } from "@codemirror/autocomplete";
import { jsonLanguage } from "@codemirror/lang-json";
import { yamlLanguage } from "@codemirror/lang-yaml";
import type { Extension } from "@codemirror/state";
import { placeInJSON, placeInYAML } from "./place";
import { offers, type Offer, type Place } from "./schema";

/** Completes members and values by the schema of a dialect. */
export function completion(schema: unknown, format: string): Extension {
  const source: CompletionSource = (context) => complete(schema, format, context);
  return (format === "json" ? jsonLanguage : yamlLanguage).data.of({ autocomplete: source });
}

function complete(schema: unknown, format: string, context: CompletionContext): CompletionResult | null {
  const place = (format === "json" ? placeInJSON : placeInYAML)(context.state, context.pos);
  if (place === undefined || (!context.explicit && place.from === context.pos && !place.quoted)) return null;
  const found = offers(schema, place);
  if (found.length === 0) return null;
  return {
    from: place.from, validFor: /^[\w$.-]*$/,
    options: found.map((o) => ({ label: o.text, apply: written(o, place, format), type: place.what === "name" ? "property" : "enum", ...(o.detail === "" ? {} : { info: o.detail }) })),
  };
}

function written(offer: Offer, place: Place, format: string): string {
  if (format === "yaml") return place.what === "name" ? `${offer.text}: ` : offer.text;
  return place.quoted || offer.detail === "boolean" || offer.detail === "number" ? offer.text : `"${offer.text}"`;
}
