package storage

import (
	"context"
	"io"
)

// Maintainer is a Store whose data an administrator maintains while it runs. Its
// members are the servers that hold copies of all data.
type Maintainer interface {
	// Defragment makes the members' files as small as what is in them, one after the
	// other. A member answers nothing meanwhile.
	Defragment(ctx context.Context) ([]Defragmentation, error)
	// Snapshot returns all data as they are at a moment, with a checksum. The caller
	// must close the result, which ends with ctx; the Store stays open until then.
	Snapshot(ctx context.Context) (io.ReadCloser, error)
	// Check reads everything that each member has and compares the members. An error
	// means that a member could not be asked; what is wrong with it is in its report.
	Check(ctx context.Context) ([]MemberReport, error)
}

// Defragmentation is what a defragmentation of one member came to.
type Defragmentation struct {
	// Endpoint is the member's URL; empty for the embedded one.
	Endpoint string `json:"endpoint,omitempty"`
	// Before and After are the bytes of its database's file.
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// MemberReport is what a check of one member found.
type MemberReport struct {
	// Endpoint is the member's URL; empty for the embedded one.
	Endpoint string `json:"endpoint,omitempty"`
	Version  string `json:"version"`
	// Revision is the current one, Compacted the one that history begins at.
	Revision  int64 `json:"revision"`
	Compacted int64 `json:"compacted"`
	// Size is the bytes of the database's file, InUse of what is in it, and Quota the
	// limit.
	Size  int64 `json:"size"`
	InUse int64 `json:"inUse"`
	Quota int64 `json:"quota"`
	// Hash is of all keys and values since Compacted.
	Hash uint32 `json:"hash"`
	// Problems are sentences; none if all is well.
	Problems []string `json:"problems,omitempty"`
}
