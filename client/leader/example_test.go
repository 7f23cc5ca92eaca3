package leader_test

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/leader"
)

// Of all processes that run this, one at a time works. A process that loses the
// lead becomes a candidate again.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c, err := client.FromKubeconfig("admin.kubeconfig", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	elector, err := leader.New(c, leader.Options{Namespace: "default", Name: "greeter"})
	if err != nil {
		log.Fatal(err)
	}
	work := func(ctx context.Context) error { // ends when ctx does
		for ctx.Err() == nil {
			log.Println(elector.Identity(), "works")
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
			}
		}
		return nil
	}
	for err = elector.Run(ctx, work); errors.Is(err, leader.ErrLost); {
		err = elector.Run(ctx, work)
	}
	if err != nil {
		log.Println(err)
	}
}
