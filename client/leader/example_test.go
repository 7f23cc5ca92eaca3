package leader_test

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/levelwire/levelwire/client/leader"
	"github.com/levelwire/levelwire/client/rest"
)

// Of all processes that run this one at a time works. Who loses the lead becomes
// a candidate again.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	client, err := rest.FromKubeconfig("admin.kubeconfig", rest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	elector, err := leader.New(client, leader.Options{Namespace: "default", Name: "greeter"})
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
