package session

// mergeValues returns the old value with the update merged into it. Objects are merged
// member by member; everything else, including null and lists, is replaced. No member of
// the old object is lost unless the update has a member with its name. Neither value is
// changed; the result shares no object or list with them.
func mergeValues(old, update any) any { return mergeInto(copyContainers(old), update) }

// mergeInto is mergeValues, but changes the objects of the old value instead of a copy.
func mergeInto(old, update any) any {
	into, intoObject := old.(map[string]any)
	from, fromObject := update.(map[string]any)
	if !intoObject || !fromObject {
		return copyContainers(update)
	}
	for key, value := range from {
		into[key] = mergeInto(into[key], value)
	}
	return into
}

// copyContainers returns a value with copies of all its objects and lists.
func copyContainers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, member := range value {
			object[key] = copyContainers(member)
		}
		return object
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = copyContainers(item)
		}
		return list
	default:
		return value
	}
}
