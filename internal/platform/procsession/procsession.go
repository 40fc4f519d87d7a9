// Package procsession starts commands in sessions of their own, so that all processes of a
// command can be killed.
package procsession
