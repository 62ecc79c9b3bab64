//! A TCP connection that is closed once it is open.

use std::net::SocketAddr;
use std::time::Duration;

use hook_core::answer::MeasurementFailure;
use tokio::net::TcpStream;

use crate::{Shared, failure};

/// Opens a connection within a slot. The wait for the slot does not count towards the timeout.
pub(crate) async fn open(
    shared: &Shared,
    namespace: &str,
    address: SocketAddr,
    timeout: Duration,
) -> Result<(), MeasurementFailure> {
    // Check first: a forbidden call needs no slot.
    shared
        .egress
        .check_address(None, address.ip())
        .map_err(|refusal| failure::forbidden(&refusal))?;
    let place = address.to_string();
    let _permit = shared.limiter.take(namespace, &place).await?;
    let connection = tokio::time::timeout(timeout, TcpStream::connect(address)).await;
    match connection {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(failure::unreachable(failure::io_sentence(&error, &place))),
        Err(_) => Err(failure::timed_out(timeout, &place)),
    }
}
