package run

import "time"

// Job is a durable order to drive a machine run until it rests.
type Job struct {
	User string `json:"user"`
	Run  string `json:"run"`
	// Delay is the time until the job is due, by the clock of the database.
	Delay time.Duration `json:"-"`
}

// DriveKind is a kind of DriveChange.
type DriveKind string

// The kinds of changes.
const (
	DriveTaken    DriveKind = "taken"
	DriveReleased DriveKind = "released"
	// DriveCancelled asks the instance that drives the run to stop.
	DriveCancelled DriveKind = "cancelled"
)

// DriveChange changes which instance drives a machine run.
type DriveChange struct {
	Kind     DriveKind
	Instance string
	// Attended is set if a person waits for the run: if the instance ends, no other instance
	// takes the run over automatically.
	Attended bool
}
