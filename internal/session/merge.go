package session

import "maps"

// mergeValues returns the old value with the update merged into it. Objects are merged
// member by member; everything else, including null and lists, is replaced. No member of
// the old object is lost unless the update has a member with its name. Neither value is
// changed; the result shares parts with both.
func mergeValues(old, update any) any {
	into, intoObject := old.(map[string]any)
	from, fromObject := update.(map[string]any)
	if !intoObject || !fromObject {
		return update
	}
	merged := maps.Clone(into)
	for key, value := range from {
		if was, ok := into[key]; ok {
			value = mergeValues(was, value)
		}
		merged[key] = value
	}
	return merged
}
