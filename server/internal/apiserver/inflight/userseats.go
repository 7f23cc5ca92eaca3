package inflight

import (
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/flowcontrol/fairqueue"
)

// UserSeats are seats without priority levels: each user is a flow, requests do not wait
// in queues, and administrators, the group system:masters, have as many seats again for
// themselves.
type UserSeats struct{ users, masters fairqueue.Flow }

// NewUserSeats returns n seats.
func NewUserSeats(n int) *UserSeats {
	level := func(oneFlow bool) fairqueue.Flow {
		const name = "users"
		seats := fairqueue.New(n, 0)
		seats.Configure([]fairqueue.Config{{Name: name, Shares: 1, OneFlow: oneFlow, Schemas: []string{name}}})
		l := seats.Level(name)
		return fairqueue.Flow{Level: l, Schema: l.Schema(name), Seats: 1}
	}
	return &UserSeats{users: level(false), masters: level(true)}
}

// Flow returns the flow of a user.
func (s *UserSeats) Flow(user auth.User) fairqueue.Flow {
	flow := s.users
	if user.In(auth.Masters) {
		flow = s.masters
	}
	flow.Key = user.Name
	return flow
}
