package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// remark is an entry for the validation log of a document.
type remark struct {
	pointer, message string
}

// The values of a dashboard's status.
const (
	statusInProgress = "in_progress"
	statusComplete   = "complete"
	statusBlocked    = "blocked"
)

// statusWords are the words that agents use for a status, in plain form. Any other word is
// logged and means in progress.
var statusWords = map[string]string{
	"complete": statusComplete, "completed": statusComplete, "done": statusComplete, "finished": statusComplete,
	"blocked": statusBlocked, "stuck": statusBlocked, "waiting": statusBlocked,
	"in_progress": statusInProgress, "inprogress": statusInProgress, "active": statusInProgress,
	"started": statusInProgress, "running": statusInProgress, "working": statusInProgress, "ongoing": statusInProgress,
}

// alias is the usual name of a member and the other names that agents use for it, the best
// first.
type alias struct {
	name  string
	other []string
}

// The members that agents write with other names, by section.
var (
	rootCauseAliases  = []alias{{"location", []string{"file", "path"}}, {"description", []string{"explanation", "summary"}}}
	fixAliases        = []alias{{"approach", []string{"description", "summary"}}, {"steps", []string{"actions"}}, {"risks", []string{"caveats"}}, {"testingStrategy", []string{"testing"}}}
	ruledOutAliases   = []alias{{"id", []string{"hypothesisId"}}, {"title", []string{"item", "hypothesis"}}}
	hypothesisAliases = []alias{{"id", []string{"hypothesisId"}}, {"description", []string{"hypothesis", "text"}}}
)

// normalizeDocument returns a document in the form that dashboards read. It changes three
// members of the dashboard: a status that is a string becomes one of three words, and a
// progress or confidence that states a number becomes a number in its range. In rootCause,
// fix, ruledOut and hypotheses it copies a member with another name to its usual name.
// Everything else is unchanged.
//
// before is the document before the update, or nil if the document is new. If an update
// changes the member with the other name, the copy is updated too.
//
// normalizeDocument(before, normalizeDocument(before, after)) is normalizeDocument(before,
// after). Neither document is changed.
func normalizeDocument(before, after map[string]any) (map[string]any, []remark) {
	result := maps.Clone(after)
	var findings []remark
	if dashboard, ok := after["dashboard"].(map[string]any); ok {
		result["dashboard"], findings = normalizeDashboard(dashboard)
	}
	for name, aliases := range map[string][]alias{"rootCause": rootCauseAliases, "fix": fixAliases} {
		if section, ok := after[name].(map[string]any); ok {
			was, _ := before[name].(map[string]any)
			result[name] = addUsualNames(was, section, aliases)
		}
	}
	for name, aliases := range map[string][]alias{"ruledOut": ruledOutAliases, "hypotheses": hypothesisAliases} {
		if list, ok := after[name].([]any); ok {
			was, _ := before[name].([]any)
			result[name] = addUsualNamesToItems(was, list, aliases)
		}
	}
	return result, findings
}

// normalizeDashboard normalizes the three members of the dashboard.
func normalizeDashboard(dashboard map[string]any) (map[string]any, []remark) {
	result := maps.Clone(dashboard)
	var findings []remark
	note := func(name, message string) {
		if message != "" {
			findings = append(findings, remark{"/dashboard/" + name, message})
		}
	}
	if word, ok := dashboard["status"].(string); ok {
		status, known := statusWords[plainWord(word)]
		if !known {
			status = statusInProgress
			note("status", fmt.Sprintf("%q is not one of in_progress, complete and blocked; it is stored as in_progress", clipText(word)))
		}
		result["status"] = status
	}
	for _, member := range []struct {
		name string
		most float64
	}{{"progress", 100}, {"confidence", 10}} {
		if value, ok := dashboard[member.name]; ok {
			number, message := inRange(value, member.most)
			result[member.name] = number
			note(member.name, message)
		}
	}
	return result, findings
}

// separators separate the words of a status.
var separators = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\s_-]+`) })

// plainWord returns a word in lower case with one kind of separator.
func plainWord(word string) string {
	return separators().ReplaceAllString(strings.ToLower(strings.TrimSpace(word)), "_")
}

// quantity matches a number as people write it: 85, 85%, ~85 percent, 7/10.
var quantity = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*~?\s*(-?\d+(?:\.\d+)?)\s*(?:%|percent|/\s*(\d+))?\s*$`)
})

// inRange returns the number in value, clamped to the range from 0 to most. The value may
// be a string that states a number. Any other value is returned unchanged. message is not
// empty if the number was clamped.
func inRange(value any, most float64) (number any, message string) {
	var given float64
	number = value
	switch value := value.(type) {
	case json.Number:
		// A number that float64 cannot represent becomes an infinity, which is then
		// clamped.
		given, _ = strconv.ParseFloat(string(value), 64)
	case string:
		parts := quantity().FindStringSubmatch(value)
		if parts == nil || (parts[2] != "" && parts[2] != formatFloat(most)) {
			return value, ""
		}
		given, _ = strconv.ParseFloat(parts[1], 64)
		number = json.Number(formatFloat(given))
	default:
		return value, ""
	}
	if kept := min(max(given, 0), most); kept != given {
		return json.Number(formatFloat(kept)), fmt.Sprintf("%v is not between 0 and %v; it is stored as %v", clipText(fmt.Sprint(value)), most, kept)
	}
	return number, ""
}

// formatFloat returns a number as JSON.
func formatFloat(f float64) string { return string(formatNumber(f)) }

// addUsualNames copies the members that a section has only by another name to their usual
// names.
func addUsualNames(before, section map[string]any, aliases []alias) map[string]any {
	result := maps.Clone(section)
	for _, a := range aliases {
		value, ok := a.findValue(section)
		if !ok {
			continue
		}
		current, has := section[a.name]
		if !has {
			result[a.name] = value
			continue
		}
		// If both members had the same value before this update, an earlier update copied
		// the alias to the usual name; copy its new value too.
		said, ok := a.findValue(before)
		if ok && reflect.DeepEqual(before[a.name], said) && reflect.DeepEqual(current, said) {
			result[a.name] = value
		}
	}
	return result
}

// findValue returns the value that a section has by one of the other names.
func (a alias) findValue(section map[string]any) (any, bool) {
	for _, name := range a.other {
		if value, ok := section[name]; ok && value != nil && value != "" {
			return value, true
		}
	}
	return nil, false
}

// addUsualNamesToItems adds the usual names to the items of a list.
func addUsualNamesToItems(before, list []any, aliases []alias) []any {
	result := slices.Clone(list)
	for i, item := range list {
		object, ok := item.(map[string]any)
		if !ok {
			continue
		}
		var was map[string]any
		if i < len(before) {
			was, _ = before[i].(map[string]any)
		}
		result[i] = addUsualNames(was, object, aliases)
	}
	return result
}
