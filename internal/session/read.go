package session

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// schemaPath selects the schema of documents.
const schemaPath = "$schema"

// queryDocument returns a part of a document: the whole document for an empty path,
// otherwise the value that a JSONPath (RFC 9535) selects if the path starts with $, or that
// a docPath selects. If the document has a member whose name is the whole path, that member
// takes precedence over a docPath, and over a JSONPath that is invalid. found is false if
// there is no such value. A filter of a list finds a list, which may be empty.
func queryDocument(data map[string]any, path string) (value any, found bool, err error) {
	if path == "" {
		return data, true, nil
	}
	literal, ok := data[path]
	if strings.HasPrefix(path, "$") {
		value, found, err = queryJSONPath(data, path)
		if err == nil || !ok {
			return value, found, err
		}
	}
	if ok {
		return literal, true, nil
	}
	parsed, err := parsePath(path)
	if err != nil {
		return nil, false, err
	}
	value, found = parsed.findValue(data)
	return value, found, nil
}

// findValue returns the value that a path selects. After a filter or [*], a name selects
// the member of every item, and an index selects one of the items.
func (p docPath) findValue(root any) (value any, found bool) {
	current, many := root, false
	for _, part := range p {
		list, isList := current.([]any)
		switch part.kind {
		case partName:
			current, found = getName(current, part.name, many)
		case partIndex:
			at, ok := listIndex(part.index, len(list))
			if !isList || !ok {
				return nil, false
			}
			current, found, many = list[at], true, false
		case partEach:
			if object, isObject := current.(map[string]any); isObject {
				list, isList = sortedValues(object), true
			}
			current, found, many = list, isList, true
		case partFilter:
			current, found, many = part.filterItems(list), isList, true
		}
		if !found {
			return nil, false
		}
	}
	return current, true
}

// getName returns a member of an object, or an item of a list whose index is the name. With
// many it returns the member of every item that has it.
func getName(value any, name string, many bool) (any, bool) {
	list, isList := value.([]any)
	if many {
		values := []any{}
		for _, item := range list {
			if member, ok := getName(item, name, false); ok {
				values = append(values, member)
			}
		}
		return values, len(values) > 0 || len(list) == 0
	}
	if isList {
		// Agents often write an index as a name, as in hypotheses.0.status.
		at, err := strconv.Atoi(name)
		if err != nil || at < 0 || at >= len(list) {
			return nil, false
		}
		return list[at], true
	}
	object, _ := value.(map[string]any)
	member, ok := object[name]
	return member, ok
}

// listIndex returns the position of an index in a list. A negative index counts from the
// end.
func listIndex(index, length int) (int, bool) {
	if index < 0 {
		index += length
	}
	return index, index >= 0 && index < length
}

// sortedValues returns the values of an object in the order of their names.
func sortedValues(object map[string]any) []any {
	values := make([]any, 0, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		values = append(values, object[key])
	}
	return values
}

// filterItems returns the items that match a filter.
func (p pathPart) filterItems(list []any) []any {
	kept := []any{}
	for _, item := range list {
		if value, ok := p.field.findValue(item); ok && textEquals(value, p.value) {
			kept = append(kept, item)
		}
	}
	return kept
}

// textEquals reports whether a value equals the text of a filter. It compares numbers by
// value.
func textEquals(value any, text string) bool {
	switch value := value.(type) {
	case nil:
		return text == "null"
	case string:
		return value == text
	case bool:
		return strconv.FormatBool(value) == text
	case json.Number:
		if string(value) == text {
			return true
		}
		a, errA := value.Float64()
		b, errB := strconv.ParseFloat(text, 64)
		return errA == nil && errB == nil && a == b
	default:
		return false
	}
}

// maxCandidates is the maximum number of documents read to resolve an ambiguous name.
const maxCandidates = 10

// Get returns a document. The name may omit the project, or the project and the workflow,
// if it matches one document of the user, or one document in the caller's project. If it
// matches several documents, the error has CodeConflict and lists their names.
func (s *Service) Get(ctx context.Context, p guideway.Principal, n Name) (*Document, error) {
	if err := checkUser(p.User); err != nil {
		return nil, err
	}
	if err := n.validate(); err != nil {
		return nil, err
	}
	ref := Ref{User: p.User, Project: n.Project, Workflow: n.Workflow, ID: n.ID}
	list, err := s.store.Documents(ctx, Filter{Ref: ref, Limit: maxCandidates})
	if err != nil {
		return nil, wrapError(err, "find session "+n.String())
	}
	if len(list) > 1 && n.Here != "" && n.Project == "" {
		ref.Project = n.Here
		here, err := s.store.Documents(ctx, Filter{Ref: ref, Limit: maxCandidates})
		if err != nil {
			return nil, wrapError(err, "find session "+n.String())
		}
		if len(here) > 0 {
			list = here
		}
	}
	switch len(list) {
	case 0:
		return nil, notFound(n)
	case 1:
		return &list[0], nil
	default:
		return nil, ambiguousName(n, list)
	}
}

// resolveName returns the complete reference of a document. For a complete name it does not
// check that the document exists.
func (s *Service) resolveName(ctx context.Context, p guideway.Principal, n Name) (Ref, error) {
	if n.Project != "" && n.Workflow != "" {
		ref := Ref{User: p.User, Project: n.Project, Workflow: n.Workflow, ID: n.ID}
		return ref, checkRef(ref)
	}
	d, err := s.Get(ctx, p, n)
	if err != nil {
		return Ref{}, err
	}
	return d.Ref, nil
}

// checkRef refuses an incomplete or invalid reference.
func checkRef(ref Ref) error {
	if err := checkUser(ref.User); err != nil {
		return err
	}
	for _, part := range []struct{ field, value string }{
		{"projectId", ref.Project}, {"workflowId", ref.Workflow}, {"sessionId", ref.ID},
	} {
		if part.value == "" {
			return guideway.Errorf(guideway.CodeInvalid, "%s is missing", part.field).WithFix("pass projectId, workflowId and sessionId")
		}
	}
	return Name{Project: ref.Project, Workflow: ref.Workflow, ID: ref.ID}.validate()
}

// checkUser refuses a caller without a user name.
func checkUser(user string) error {
	if user == "" {
		return guideway.Errorf(guideway.CodeUnauthorized, "session documents belong to a user, but the caller is unknown").
			WithFix("connect with the bearer token of the server; guideway doctor shows the path of its file")
	}
	return nil
}

// notFound returns the error for a document that does not exist or belongs to another user.
func notFound(n Name) error {
	where := ""
	if n.Project != "" {
		where = " in project " + n.Project
		n.Project = ""
	}
	return guideway.Errorf(guideway.CodeNotFound, "session not found: %s%s", n, where).
		WithFix("create the session with workrail_create_session, or list the existing ones with guideway sessions list")
}

// ambiguousName returns the error for a name that matches several documents.
func ambiguousName(n Name, list []Document) error {
	names := make([]string, len(list))
	workflows, projects := map[string]bool{}, map[string]bool{}
	for i, d := range list {
		names[i] = d.Project + "/" + d.Workflow + "/" + d.ID
		if d.ProjectPath != "" {
			names[i] += " (" + d.ProjectPath + ")"
		}
		workflows[d.Workflow], projects[d.Project] = true, true
	}
	missing := "the project"
	switch {
	case len(projects) == 1:
		missing = "the workflow"
	case len(workflows) > 1 && n.Workflow == "":
		missing = "the project and the workflow"
	}
	more := ""
	if len(list) == maxCandidates {
		more = ", and possibly more"
	}
	return guideway.Errorf(guideway.CodeConflict, "session %s is not unique; sessions with this id: %s%s", n, strings.Join(names, ", "), more).
		WithFix("%s", fmt.Sprintf("also pass %s, as in %s/%s/%s", missing, list[0].Project, list[0].Workflow, list[0].ID))
}

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
