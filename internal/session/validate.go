package session

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// maxRemarks is the maximum number of log entries of one update.
const maxRemarks = 50

// validateDocument returns remarks about content that dashboards cannot display, and about
// members that a bug investigation lacks. The remarks are logged; no document is refused
// because of them. The document must be normalized.
func validateDocument(workflow string, data map[string]any) []remark {
	v := validator{}
	v.checkDashboard(data)
	for _, name := range []string{"rootCause", "fix"} {
		if value := data[name]; value != nil && !isObject(value) {
			v.addRemark("/"+name, "found %s; expected an object", kindOf(value))
		}
	}
	v.checkItems(data, "ruledOut", func(string, map[string]any) {})
	v.checkItems(data, "hypotheses", func(pointer string, item map[string]any) {
		v.checkWord(pointer+"/status", item["status"], "active", "confirmed", "ruled_out")
	})
	// Documents of bug investigations need more members, which their workflow asks the
	// agent to fill in.
	if strings.Contains(workflow, "bug-investigation") {
		v.checkInvestigation(data)
	}
	return v.findings
}

// validator collects remarks.
type validator struct {
	findings []remark
}

func (v *validator) addRemark(pointer, format string, args ...any) {
	if len(v.findings) < maxRemarks {
		v.findings = append(v.findings, remark{pointer, fmt.Sprintf(format, args...)})
	}
}

// checkDashboard checks the members that dashboards read in every document.
func (v *validator) checkDashboard(data map[string]any) {
	value := data["dashboard"]
	if value == nil {
		return
	}
	dashboard, ok := value.(map[string]any)
	if !ok {
		v.addRemark("/dashboard", "found %s; expected an object", kindOf(value))
		return
	}
	v.checkWord("/dashboard/status", dashboard["status"], statusInProgress, statusComplete, statusBlocked)
	for name, most := range map[string]int{"progress": 100, "confidence": 10} {
		if value := dashboard[name]; value != nil {
			if _, ok := value.(json.Number); !ok {
				v.addRemark("/dashboard/"+name, "found %s, %q; expected a number from 0 to %d", kindOf(value), clipText(fmt.Sprint(value)), most)
			}
		}
	}
	for _, name := range []string{"startedAt", "completedAt"} {
		if value := dashboard[name]; value != nil {
			text, _ := value.(string)
			if _, err := time.Parse(time.RFC3339, text); err != nil {
				v.addRemark("/dashboard/"+name, "found %s, %q; expected a time such as 2026-01-31T12:00:00Z", kindOf(value), clipText(fmt.Sprint(value)))
			}
		}
	}
}

// checkWord checks that a value, if present, is one of the allowed words.
func (v *validator) checkWord(pointer string, value any, allowed ...string) {
	if value == nil {
		return
	}
	if word, ok := value.(string); !ok || !slices.Contains(allowed, word) {
		v.addRemark(pointer, "found %s, %q; expected one of %s", kindOf(value), clipText(fmt.Sprint(value)), strings.Join(allowed, ", "))
	}
}

// checkItems checks a list of objects.
func (v *validator) checkItems(data map[string]any, name string, check func(pointer string, item map[string]any)) {
	value := data[name]
	list, ok := value.([]any)
	if !ok && value != nil {
		v.addRemark("/"+name, "found %s; expected a list of objects", kindOf(value))
	}
	for i, item := range list {
		pointer := fmt.Sprintf("/%s/%d", name, i)
		if object, ok := item.(map[string]any); ok {
			check(pointer, object)
		} else {
			v.addRemark(pointer, "found %s; expected an object", kindOf(item))
		}
	}
}

// checkInvestigation checks the members that a bug investigation needs.
func (v *validator) checkInvestigation(data map[string]any) {
	dashboard, _ := data["dashboard"].(map[string]any)
	for _, name := range []string{"status", "progress", "confidence"} {
		if dashboard[name] == nil {
			v.addRemark("/dashboard/"+name, "the member is missing; a bug investigation should have the member")
		}
	}
	if dashboard["status"] == statusComplete && data["rootCause"] == nil {
		v.addRemark("/rootCause", "the investigation is complete but has no root cause")
	}
}

// isObject reports whether a value is an object.
func isObject(value any) bool {
	_, ok := value.(map[string]any)
	return ok
}

// newRemarks returns the remarks that the last revision did not have: repeating them at
// every update would flood the log.
func newRemarks(before, after []remark) []remark {
	fresh := lists.Filter(after, func(f remark) bool { return !slices.Contains(before, f) })
	slices.SortFunc(fresh, func(a, b remark) int {
		return strings.Compare(a.pointer+"\x00"+a.message, b.pointer+"\x00"+b.message)
	})
	return fresh
}

//go:embed schema.json
var schemaText []byte

// Schema returns the JSON Schema (2020-12) of the members that dashboards read. Documents
// need not match it.
func Schema() json.RawMessage {
	return json.RawMessage(append([]byte(nil), schemaText...))
}
