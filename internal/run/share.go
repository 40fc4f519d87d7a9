package run

import (
	"cmp"
	"context"
	"slices"

	"github.com/guideway-dev/guideway/internal/run/project"
)

// Share is a project whose members use each other's runs.
type Share struct {
	// Project is the id of the project.
	Project string
	// Members are the users.
	Members []string
}

// Shares are the shared projects.
type Shares []Share

// isShared reports whether a user may use the runs of another user in the project.
func (h Share) isShared(user, owner, project string) bool {
	return h.Project == project && slices.Contains(h.Members, user) && slices.Contains(h.Members, owner)
}

// MayUse reports whether a user may use the runs of an owner in a project.
func (s Shares) MayUse(user, owner, project string) bool {
	return user == owner || slices.ContainsFunc(s, func(h Share) bool { return h.isShared(user, owner, project) })
}

// MayUse reports whether a user may use the runs of an owner in a project.
func (s *Service) MayUse(user, owner, project string) bool {
	return s.shares.MayUse(user, owner, project)
}

// Peers returns the other members of the projects of a user.
func (s *Service) Peers(user string) []string {
	var peers []string
	for _, h := range s.shares {
		if slices.Contains(h.Members, user) {
			peers = append(peers, h.Members...)
		}
	}
	slices.Sort(peers)
	return slices.DeleteFunc(slices.Compact(peers), func(peer string) bool { return peer == user })
}

// MayUseAll reports whether the caller may use each of the runs, and there is one.
func (s *Service) MayUseAll(ctx context.Context, c Caller, runIDs []string) bool {
	return len(runIDs) > 0 && !slices.ContainsFunc(runIDs, func(id string) bool {
		_, _, err := s.findByRef(ctx, c, Ref{RunID: id})
		return err != nil
	})
}

// AllowedProject returns the project of a new run. Its path is one of this computer: only the
// local user names any, and other users those of their shared projects.
func (s Shares) AllowedProject(c Caller, p Project) Project {
	if c.Roles == nil || p.Path == "" {
		return p
	}
	if id := project.ID(p.Path); slices.ContainsFunc(s, func(h Share) bool { return h.isShared(c.User, c.User, id) }) {
		p.ID = id
		return p
	}
	return Project{ID: p.ID}
}

// mayUse reports whether the caller may use a run. The record of a run can be edited, so the
// project of another user's run is compared with that of its first event.
func (s *Service) mayUse(ctx context.Context, c Caller, r Record) bool {
	if r.User == c.User {
		return true
	}
	if !s.MayUse(c.User, r.User, r.Project.ID) {
		return false
	}
	created, err := s.readCreated(ctx, r)
	return err == nil && created.Project.ID == r.Project.ID
}

// visibleFilters returns a filter for the runs of the caller, and one for the runs of the
// other members of each shared project.
func (s Shares) visibleFilters(c Caller, f Filter) []Filter {
	f.User = c.User
	filters := []Filter{f}
	for _, h := range s {
		others := slices.DeleteFunc(slices.Clone(h.Members), func(user string) bool { return user == c.User })
		if len(others) > 0 && len(others) < len(h.Members) && (f.Project == "" || f.Project == h.Project) {
			shared := f
			shared.User, shared.Users, shared.Project = "", others, h.Project
			filters = append(filters, shared)
		}
	}
	return filters
}

// visibleRuns returns the runs that the caller may use, with the last changed one first.
func (s *Service) visibleRuns(ctx context.Context, c Caller, f Filter) ([]Record, error) {
	return s.shares.VisibleRuns(ctx, s.journal, c, f, func(r Record) bool { return s.mayUse(ctx, c, r) })
}

// VisibleRuns returns the runs of a journal that the caller may use, with the last changed one
// first. mayUse compares the record of another user's run with its first event.
func (s Shares) VisibleRuns(ctx context.Context, j Journal, c Caller, f Filter, mayUse func(Record) bool) ([]Record, error) {
	filters := s.visibleFilters(c, f)
	var all []Record
	for _, one := range filters {
		list, err := j.Runs(ctx, one)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	if len(filters) == 1 {
		return all, nil
	}
	all = slices.DeleteFunc(all, func(r Record) bool { return !mayUse(r) })
	slices.SortFunc(all, func(a, b Record) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(b.ID, a.ID))
	})
	if f.Limit > 0 && len(all) > f.Limit {
		all = all[:f.Limit]
	}
	return all, nil
}

// searchVisible searches the runs that the caller may use.
func (s *Service) searchVisible(ctx context.Context, c Caller, q Search) ([]Hit, error) {
	var all []Hit
	for _, one := range s.shares.visibleFilters(c, q.Filter) {
		hits, err := s.journal.Search(ctx, Search{Filter: one, Query: q.Query})
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(hits, func(h Hit) bool { return !s.mayUse(ctx, c, h.Record) })...)
	}
	return all, nil
}
