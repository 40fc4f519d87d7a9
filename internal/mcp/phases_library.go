package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/library"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// nextAction is the next call in an answer, in the form of the original server.
type nextAction struct {
	Tool       string         `json:"tool"`
	Parameters map[string]any `json:"parameters"`
}

func skillAction(id string) nextAction {
	return nextAction{"get_skill", map[string]any{"skill_id": id}}
}

func (p *phaseTools) currentLibrary() *library.Library { return p.catalog.Snapshot().Library() }

// activityInfo is an activity in the answer of get_activities.
type activityInfo struct {
	ID             string          `json:"id"`
	Problem        string          `json:"problem"`
	PrimarySkill   string          `json:"primary_skill"`
	NextAction     nextAction      `json:"next_action"`
	MandatoryGuide *mandatoryGuide `json:"mandatory_guide,omitempty"`
}

// mandatoryGuide is the guide to read before an activity.
type mandatoryGuide struct {
	WorkflowID string `json:"workflow_id"`
	Index      string `json:"index"`
	Content    string `json:"content,omitempty"`
	Format     string `json:"format,omitempty"`
}

func (p *phaseTools) getActivities(context.Context, call) (any, error) {
	out := struct {
		Description string            `json:"description"`
		Usage       string            `json:"usage"`
		NextAction  nextAction        `json:"next_action"`
		Activities  []activityInfo    `json:"activities"`
		QuickMatch  map[string]string `json:"quick_match"`
	}{
		Description: "User goals, with the first skill of each.",
		Usage:       "Match the goal with match_activity, or by quick_match, then by the problems of the activities; if several fit, ask the user. Then make the call in next_action.",
		NextAction:  nextAction{"get_rules", map[string]any{}},
		Activities:  []activityInfo{}, QuickMatch: map[string]string{},
	}
	lib := p.currentLibrary()
	for _, e := range lib.Activities() {
		out.Activities = append(out.Activities, activityInfo{
			e.ID, e.Activity.Problem, e.Activity.Skills.Primary, skillAction(e.Activity.Skills.Primary), loadGuide(lib, e.Activity.Guide),
		})
		for _, phrase := range e.Activity.Recognition {
			if phrase = strings.ToLower(phrase); out.QuickMatch[phrase] == "" {
				out.QuickMatch[phrase] = e.ID
			}
		}
	}
	return textAnswer{structure: out}, nil
}

// loadGuide returns the guide that an activity names.
func loadGuide(lib *library.Library, ref *phases.MandatoryGuide) *mandatoryGuide {
	if ref == nil {
		return nil
	}
	out := &mandatoryGuide{WorkflowID: ref.WorkflowID, Index: ref.Index}
	if e := lib.Text(library.KindGuide, ref.WorkflowID, ref.Index); e != nil {
		out.Content, out.Format = e.Text, e.Format
	}
	return out
}

func (p *phaseTools) getActivity(_ context.Context, c call) (any, error) {
	lib, id := p.currentLibrary(), c.textArg("activity_id")
	e := lib.Activity(id)
	if e == nil {
		e = library.Numbered(lib.Activities(), id)
	}
	if e == nil {
		return nil, p.explainMissing(lib, library.KindActivity, c, "activity_id", "", id, entryIDs(lib.Activities()))
	}
	return wholeDocument(e.Canonical, func(members map[string]any) { members["next_action"] = skillAction(e.Activity.Skills.Primary) })
}

func entryIDs(entries []*library.Entry) []string {
	return lists.Map(entries, func(e *library.Entry) string { return e.ID })
}

// fixFile is the fix of an error about a file that did not load.
const fixFile = "correct the file, as the diagnostic describes"

// explainMissing returns the error about an unknown document, with the reason if its file
// did not load.
func (p *phaseTools) explainMissing(lib *library.Library, kind phases.EntryKind, c call, field, workflow, id string, allowed []string) *callError {
	name := string(kind)
	bad := notFound(strings.ToUpper(name[:1])+name[1:], field, id, allowed)
	if why := lib.Why(kind, workflow, id); why != nil {
		bad.Code, bad.Diagnostics = guideway.CodeInvalidDefinition, []guideway.Diagnostic{*why}
		bad.Message = fmt.Sprintf("%s: the file did not load: %s", bad.Message, why.Message)
		bad.Fix = fixFile
	}
	bad.suggestRetry(c)
	return bad
}

// activityMatch is an activity in the answer of match_activity.
type activityMatch struct {
	ID           string   `json:"id"`
	Problem      string   `json:"problem"`
	PrimarySkill string   `json:"primary_skill"`
	Score        float64  `json:"score"`
	Why          []string `json:"why"`
}

func (p *phaseTools) matchActivity(_ context.Context, c call) (any, error) {
	status, found := p.currentLibrary().Match(c.textArg("goal"))
	out := struct {
		Status     library.MatchStatus `json:"status"`
		Matches    []activityMatch     `json:"matches"`
		Question   string              `json:"question,omitempty"`
		NextAction nextAction          `json:"next_action"`
	}{Status: status, Matches: []activityMatch{}, NextAction: nextAction{"get_activities", map[string]any{}}}
	for _, m := range found {
		a := m.Activity.Activity
		out.Matches = append(out.Matches, activityMatch{a.ID, a.Problem, a.Skills.Primary, m.Score, m.Why})
	}
	switch status {
	case library.MatchFound:
		out.NextAction = nextAction{"get_activity", map[string]any{"activity_id": found[0].Activity.ID}}
	case library.MatchAmbiguous:
		out.Question = askWhichActivity(found)
		out.NextAction = nextAction{"get_activity", map[string]any{"activity_id": "id of the activity that the user means"}}
	case library.MatchNone:
		out.Question = "No activity matches these words. Ask the user what they want to achieve, or look at all activities."
	}
	return textAnswer{structure: out}, nil
}

// askWhichActivity returns the instruction to let the user choose among the activities
// whose scores are close to the best.
func askWhichActivity(found []library.Match) string {
	best := found[0].Score
	var lines []string
	for _, m := range found {
		if best-m.Score < library.Apart {
			lines = append(lines, fmt.Sprintf("%s (%s)", m.Activity.ID, strings.TrimSuffix(m.Activity.Activity.Problem, ".")))
		}
	}
	return "Ask the user which one they mean: " + strings.Join(lines, "; ") + "?"
}

func (p *phaseTools) getRules(context.Context, call) (any, error) {
	lib := p.currentLibrary()
	e := lib.Rules()
	if e != nil {
		return wholeDocument(e.Canonical, func(map[string]any) {})
	}
	bad := &callError{
		Code: guideway.CodeNotFound, Message: "Global rules not found",
		Fix: "write meta/rules.yaml in a workflow directory", Next: &run.Call{Tool: "list_resources", Arguments: map[string]any{}},
	}
	if why := lib.Why(library.KindRules, "", ""); why != nil {
		bad.Code, bad.Diagnostics = guideway.CodeInvalidDefinition, []guideway.Diagnostic{*why}
		bad.Message, bad.Fix = "the file of the global rules did not load: "+why.Message, fixFile
	}
	return nil, bad
}

// skillInfo is a skill in the answer of get_skills.
type skillInfo struct {
	ID         string     `json:"id"`
	Capability string     `json:"capability"`
	NextAction nextAction `json:"next_action"`
}

func (p *phaseTools) getSkills(context.Context, call) (any, error) {
	lib := p.currentLibrary()
	lines := func(workflow string) []skillInfo {
		list := []skillInfo{}
		for _, e := range lib.Skills(workflow) {
			action := skillAction(e.ID)
			if workflow != "" {
				action.Parameters["workflow_id"] = workflow
			}
			list = append(list, skillInfo{e.ID, e.Skill.Capability, action})
		}
		return list
	}
	specific := map[string][]skillInfo{}
	for _, owner := range lib.Owners() {
		if len(lib.Skills(owner)) > 0 {
			specific[owner] = lines(owner)
		}
	}
	return textAnswer{structure: struct {
		Description string                 `json:"description"`
		Usage       string                 `json:"usage"`
		Universal   []skillInfo            `json:"universal"`
		Specific    map[string][]skillInfo `json:"workflow_specific"`
	}{"How to use the tools.", "Get the skill that an activity names. A workflow's own skill takes precedence over a shared one.", lines(""), specific}}, nil
}

// skillFile is a skill in the answer of list_skills.
type skillFile struct {
	Index      string `json:"index"`
	ID         string `json:"id"`
	Name       string `json:"name"`
	Path       string `json:"path"`
	WorkflowID string `json:"workflowId,omitempty"`
}

func skillFiles(entries []*library.Entry) []skillFile {
	return lists.Map(entries, func(e *library.Entry) skillFile { return skillFile{e.Digits, e.ID, e.Title, e.Path, e.Workflow} })
}

func (p *phaseTools) listSkills(_ context.Context, c call) (any, error) {
	lib, id := p.currentLibrary(), c.textArg("workflow_id")
	if id != "" {
		if err := p.checkOwner(c); err != nil {
			return nil, err
		}
		return textAnswer{structure: struct {
			Universal []skillFile `json:"universal"`
			Workflow  []skillFile `json:"workflow"`
		}{skillFiles(lib.Skills("")), skillFiles(lib.Skills(id))}}, nil
	}
	all := skillFiles(lib.Skills(""))
	for _, owner := range lib.Owners() {
		all = append(all, skillFiles(lib.Skills(owner))...)
	}
	return itemList(all, "")
}

func (p *phaseTools) getSkill(_ context.Context, c call) (any, error) {
	lib, id, workflow := p.currentLibrary(), c.textArg("skill_id"), c.textArg("workflow_id")
	if workflow != "" {
		if err := p.checkOwner(c); err != nil {
			return nil, err
		}
	}
	own, shared := lib.Skills(workflow), lib.Skills("")
	if workflow == "" {
		own = nil
	}
	for _, e := range []*library.Entry{lib.Skill(workflow, id), library.Numbered(own, id), library.Numbered(shared, id)} {
		if e != nil {
			return wholeDocument(e.Canonical, func(map[string]any) {})
		}
	}
	allowed := entryIDs(own)
	for _, id := range entryIDs(shared) {
		if !slices.Contains(allowed, id) {
			allowed = append(allowed, id)
		}
	}
	bad := p.explainMissing(lib, library.KindSkill, c, "skill_id", workflow, id, allowed)
	for _, owner := range lib.Owners() {
		if lib.Skill(owner, id) != nil {
			bad.Fix = fmt.Sprintf("set workflow_id to %q, which has this skill", owner)
			bad.Next = &run.Call{Tool: "get_skill", Arguments: map[string]any{"skill_id": id, "workflow_id": owner}}
		}
	}
	return nil, bad
}

const (
	guidePrefix      = "guideway://guides/"
	guideTemplate    = guidePrefix + "{workflow}/{index}"
	templatePrefix   = "guideway://templates/"
	templateTemplate = templatePrefix + "{workflow}/{index}"
)

// addLibraryResources adds the guides and templates. Steps of runs name them, so they are
// also needed without the toolset "phases".
func (s *Server) addLibraryResources() {
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: guideTemplate, Name: "guide", Title: "A guide",
		Description: "A guide of a phase workflow by its index or name.",
	}, s.readText(guidePrefix, library.KindGuide))
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: templateTemplate, Name: "template", Title: "A template",
		Description: "A template of a phase workflow by its index or name.",
	}, s.readText(templatePrefix, library.KindTemplate))
}

func (s *Server) readText(prefix string, kind phases.EntryKind) mcp.ResourceHandler {
	return func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		uri := req.Params.URI
		path, ok := strings.CutPrefix(uri, prefix)
		workflow, index, more := strings.Cut(path, "/")
		if !ok || !more {
			return nil, mcp.ResourceNotFoundError(uri)
		}
		e := s.catalog.Snapshot().Library().Text(kind, workflow, index)
		if e == nil {
			return nil, mcp.ResourceNotFoundError(uri)
		}
		return newTextResource(uri, cmp.Or(mimeTypes[e.Format], "text/plain"), e.Text), nil
	}
}

// mimeTypes are the media types of the formats of texts. All other formats are plain text.
var mimeTypes = map[string]string{"markdown": "text/markdown", "json": mimeJSON, "yaml": "application/yaml"}

// textParts suggests parts of the URI of a guide or template: the ids of workflows that
// have such texts, and the indices of the texts.
func (s *Server) textParts(p *mcp.CompleteParams, kind phases.EntryKind) []string {
	lib := s.catalog.Snapshot().Library()
	var values []string
	switch p.Argument.Name {
	case "workflow":
		for _, owner := range lib.Owners() {
			if len(lib.Texts(kind, owner)) > 0 {
				values = append(values, owner)
			}
		}
	case "index":
		if p.Context == nil {
			return nil
		}
		for _, e := range lib.Texts(kind, p.Context.Arguments["workflow"]) {
			values = append(values, e.Digits)
		}
	}
	return values
}
