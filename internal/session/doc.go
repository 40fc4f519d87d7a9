// Package session keeps session documents: the free-form JSON in which an agent
// writes down how it gets on, for a person to look at and for itself to read
// back. A document belongs to a user, a project and a workflow.
//
// What an agent writes is kept as it is. Updates are merged into it, a few names
// and values of the dashboard are brought into one form, and what looks wrong
// goes into a log; nothing is ever refused for its content.
//
// All but the Service is pure: no clock, no I/O.
package session
