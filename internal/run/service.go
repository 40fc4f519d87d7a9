package run

import (
	"context"
	"errors"
)

// STUBS, to be replaced: the signatures are final.

// Service runs guided workflows.
type Service struct{}

var errTODO = errors.New("to be written")

// Start begins a run.
func (s *Service) Start(ctx context.Context, c Caller, r StartRequest) (*Answer, error) {
	return nil, errTODO
}

// Continue hands in what the position asked for.
func (s *Service) Continue(ctx context.Context, c Caller, r ContinueRequest) (*Answer, error) {
	return nil, errTODO
}

// Status says where a run stands; it takes any handle of the run.
func (s *Service) Status(ctx context.Context, c Caller, r Ref) (*Answer, error) { return nil, errTODO }

// Answer answers a gate for a person; c.Via must prove one where the gate wants it.
func (s *Service) Answer(ctx context.Context, c Caller, r AnswerRequest) (*Answer, error) {
	return nil, errTODO
}

// Resume finds runs.
func (s *Service) Resume(ctx context.Context, c Caller, r ResumeRequest) ([]Candidate, error) {
	return nil, errTODO
}

// Fork copies a run's beginning into a new run.
func (s *Service) Fork(ctx context.Context, c Caller, r ForkRequest) (*Answer, error) {
	return nil, errTODO
}

// Abort ends a run.
func (s *Service) Abort(ctx context.Context, c Caller, r AbortRequest) (*Answer, error) {
	return nil, errTODO
}

// List lists the caller's runs; f.User is overwritten.
func (s *Service) List(ctx context.Context, c Caller, f Filter) ([]Record, error) {
	return nil, errTODO
}

// Get tells all of a run.
func (s *Service) Get(ctx context.Context, c Caller, r Ref) (*Details, error) { return nil, errTODO }

// Verify checks the chains of all runs, or of one.
func (s *Service) Verify(ctx context.Context, runID string) (*Report, error) { return nil, errTODO }

// AcceptRestore has the heads follow the journal, after a deliberate restore.
func (s *Service) AcceptRestore(ctx context.Context) error { return errTODO }

// Export gives a run as a self-contained, versioned JSON bundle.
func (s *Service) Export(ctx context.Context, c Caller, r Ref) ([]byte, error) { return nil, errTODO }

// Import stores a bundle as a run of the caller's.
func (s *Service) Import(ctx context.Context, c Caller, bundle []byte) (*Answer, error) {
	return nil, errTODO
}
