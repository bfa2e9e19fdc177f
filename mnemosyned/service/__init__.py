"""How each verb is done."""
