package session

import (
	"context"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
)

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
