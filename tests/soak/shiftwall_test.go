//go:build wallclock

package soak

import "time"

func init() { shiftWall = time.ShiftWall }
