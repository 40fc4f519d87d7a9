package session

import (
	"context"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
)

// mostCandidates bounds how many documents are looked at where a name fits
// several.
const mostCandidates = 10

// Get gives a document. The name may leave out the project, or the project and
// the workflow, while it fits one document of the user's alone, or one alone in
// the project that the caller works in. CodeConflict where it fits several, with
// their names.
func (s *Service) Get(ctx context.Context, p guideway.Principal, n Name) (*Document, error) {
	if err := checkUser(p.User); err != nil {
		return nil, err
	}
	if err := n.check(); err != nil {
		return nil, err
	}
	ref := Ref{User: p.User, Project: n.Project, Workflow: n.Workflow, ID: n.ID}
	list, err := s.store.Documents(ctx, Filter{Ref: ref, Limit: mostCandidates})
	if err != nil {
		return nil, wrap(err, "find session "+n.String())
	}
	if len(list) > 1 && n.Here != "" && n.Project == "" {
		ref.Project = n.Here
		here, err := s.store.Documents(ctx, Filter{Ref: ref, Limit: mostCandidates})
		if err != nil {
			return nil, wrap(err, "find session "+n.String())
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
		return nil, ambiguous(n, list)
	}
}

// resolve gives the whole name of a document. A name that is whole already is
// not looked up.
func (s *Service) resolve(ctx context.Context, p guideway.Principal, n Name) (Ref, error) {
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

// checkRef refuses a name that is not whole.
func checkRef(ref Ref) error {
	if err := checkUser(ref.User); err != nil {
		return err
	}
	for _, part := range []struct{ field, value string }{
		{"projectId", ref.Project}, {"workflowId", ref.Workflow}, {"sessionId", ref.ID},
	} {
		if part.value == "" {
			return guideway.Errorf(guideway.CodeInvalid, "%s is missing", part.field).WithFix("name projectId, workflowId and sessionId")
		}
	}
	return Name{Project: ref.Project, Workflow: ref.Workflow, ID: ref.ID}.check()
}

// checkUser keeps a caller without a name from being taken for anybody.
func checkUser(user string) error {
	if user == "" {
		return guideway.Errorf(guideway.CodeUnauthorized, "session documents belong to a user, and the caller has no name")
	}
	return nil
}

// notFound is the answer for a document that is not there or somebody else's.
func notFound(n Name) error {
	where := ""
	if n.Project != "" {
		where = " in project " + n.Project
		n.Project = ""
	}
	return guideway.Errorf(guideway.CodeNotFound, "session not found: %s%s", n, where).
		WithFix("make sure the session exists: workrail_create_session makes it, guideway sessions list shows which there are")
}

// ambiguous is the answer for a name that fits several documents.
func ambiguous(n Name, list []Document) error {
	names := make([]string, len(list))
	workflows, projects := map[string]bool{}, map[string]bool{}
	for i, d := range list {
		names[i] = d.Project + "/" + d.Workflow + "/" + d.ID
		if d.ProjectPath != "" {
			names[i] += " (" + d.ProjectPath + ")"
		}
		workflows[d.Workflow], projects[d.Project] = true, true
	}
	missing := "projectId"
	switch {
	case len(projects) == 1:
		missing = "workflowId"
	case len(workflows) > 1 && n.Workflow == "":
		missing = "projectId and workflowId"
	}
	more := ""
	if len(list) == mostCandidates {
		more = " and maybe more"
	}
	return guideway.Errorf(guideway.CodeConflict, "session %s is not unique: %s%s", n, strings.Join(names, ", "), more).
		WithFix("%s", fmt.Sprintf("name the %s too, as in %s/%s/%s", missing, list[0].Project, list[0].Workflow, list[0].ID))
}
