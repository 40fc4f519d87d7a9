package session

import "maps"

// merge gives the old value with a new one merged into it: objects member by
// member, everything else, null and lists included, in place of what was there.
// No member of the old object is lost unless the new one has it. Neither value
// is changed; the result shares parts with both.
func merge(old, update any) any {
	into, intoObject := old.(map[string]any)
	from, fromObject := update.(map[string]any)
	if !intoObject || !fromObject {
		return update
	}
	merged := maps.Clone(into)
	for key, value := range from {
		if was, ok := into[key]; ok {
			value = merge(was, value)
		}
		merged[key] = value
	}
	return merged
}
