package session

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// MaxDashboard is the maximum size of the dashboard in a Summary, in bytes of JSON.
const MaxDashboard = 4 << 10

// Summary is a document in a list. It has the dashboard instead of all data.
type Summary struct {
	Ref
	ProjectPath string    `json:"projectPath,omitempty"`
	Created     time.Time `json:"createdAt"`
	Updated     time.Time `json:"updatedAt"`
	Revision    int64     `json:"revision"`
	// Dashboard is the JSON of the data's member "dashboard", or nil. If it has more than
	// MaxDashboard bytes, its longest members are omitted.
	Dashboard json.RawMessage `json:"dashboard,omitempty"`
}

// Summary returns the summary of a document.
func (d Document) Summary() (Summary, error) {
	dashboard, err := json.RawMessage(d.SealedDashboard), error(nil)
	if d.Sealed == nil {
		dashboard, err = summaryDashboard(d.Data["dashboard"])
	}
	if err != nil {
		return Summary{}, guideway.Errorf(guideway.CodeInvalid, "summarize the session document %s/%s: %w", d.Workflow, d.ID, err)
	}
	return Summary{
		Ref: d.Ref, ProjectPath: d.ProjectPath, Created: d.Created, Updated: d.Updated, Revision: d.Revision, Dashboard: dashboard,
	}, nil
}

func summaryDashboard(value any) (json.RawMessage, error) {
	if value == nil {
		return nil, nil
	}
	text, err := jsontext.Marshal(value)
	if err != nil || len(text) <= MaxDashboard {
		return text, err
	}
	members, _ := value.(map[string]any)
	return shortestMembers(members)
}

// shortestMembers returns an object with as many of the shortest members as a summary has
// room for. The title, the status and the progress are short.
func shortestMembers(members map[string]any) (json.RawMessage, error) {
	sizes := make(map[string]int, len(members))
	for name, value := range members {
		text, err := jsontext.Marshal(map[string]any{name: value}) // the two braces take at least as much space as the comma between members
		if err != nil {
			return nil, err
		}
		sizes[name] = len(text)
	}
	names := slices.SortedFunc(maps.Keys(members), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[a], sizes[b]), cmp.Compare(a, b))
	})
	kept, size := map[string]any{}, 0
	for _, name := range names {
		if size += sizes[name]; size > MaxDashboard {
			break
		}
		kept[name] = members[name]
	}
	if len(kept) == 0 {
		return nil, nil
	}
	return jsontext.Marshal(kept)
}
